#!/bin/sh
# Installs Lamina with its locked dependencies into a new environment: sh tools/install.sh FOLDER
# UV names the uv to use; without it, the locked one is installed with pip.
set -eu

folder=$1
root=$(cd "$(dirname "$0")/.." && pwd)
if [ -z "${UV:-}" ]; then
    python3 -m pip install --quiet --no-cache-dir --disable-pip-version-check \
        "$(sed -n 's/^\(uv==[^ ]*\).*/\1/p' "$root/requirements.lock")"
    UV=uv
fi
wheels=$(mktemp -d)
trap 'rm -rf "$wheels"' EXIT

"$UV" venv --quiet --python "${PYTHON:-python3}" "$folder"
# Compiled here: the root file system of the container is read-only, and the first start is fast.
"$UV" pip sync --quiet --compile-bytecode --require-hashes --python "$folder/bin/python" "$root/requirements-runtime.lock"
"$UV" build --quiet --wheel --out-dir "$wheels" "$root"
"$UV" pip install --quiet --compile-bytecode --no-deps --python "$folder/bin/python" "$wheels"/lamina-*.whl
