#!/usr/bin/env bash
# PostgreSQL for the tests of tables that stay where they are, where there is apt and root.
set -u
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null 2>&1 && exit 0
if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
  echo "installing for the tests of databases: postgresql"
  DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends postgresql \
    >/dev/null 2>&1 && exit 0
fi
echo "PostgreSQL was not found: its tests will skip (apt-get install postgresql as root)"
