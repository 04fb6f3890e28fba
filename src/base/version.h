/* version: what this program calls itself */
#ifndef AIRLOCK_BASE_VERSION_H
#define AIRLOCK_BASE_VERSION_H

#define AIRLOCK_VERSION "0.1.0"

#endif
