/* replay: feeds a fuzz target every file of its corpus, under any compiler */
#include <dirent.h>
#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
replay_file(const char *path, size_t size)
{
	uint8_t *data = malloc(size + 1); /* malloc(0) may be NULL */
	FILE *f = fopen(path, "rb");

	if (data == NULL || f == NULL || fread(data, 1, size, f) != size)
		err(1, "cannot read '%s'", path);
	fclose(f);
	LLVMFuzzerTestOneInput(data, size);
	free(data);
}

static unsigned
replay_corpus(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *entry;
	struct stat st;
	char path[4096];
	unsigned n = 0;

	if (d == NULL)
		err(1, "cannot open '%s'", dir);
	while ((entry = readdir(d)) != NULL) {
		snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
		if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
			continue;
		replay_file(path, (size_t)st.st_size);
		n++;
	}
	closedir(d);
	return n;
}

int
main(int argc, char **argv)
{
	if (argc < 2)
		errx(2, "usage: %s CORPUS ...", argv[0]);
	for (int i = 1; i < argc; i++) {
		unsigned n = replay_corpus(argv[i]);

		if (n == 0)
			errx(1, "'%s' holds no input", argv[i]);
		printf("fuzz: %s: %u inputs\n", argv[i], n);
	}
	return 0;
}
