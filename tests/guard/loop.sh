#!/bin/sh
# loop: a shell that takes its commands from a fifo, one opening each
fifo=$1
while command=$(cat "$fifo"); do
	eval "$command"
done
