# Sourced by ./start and ./test, from the checkout's root: installs what is missing, each step saying so.
# Nothing happens where everything is there, so calling it every time costs nothing.

export CARGO_TARGET_DIR="$PWD/target"
export DEBIAN_FRONTEND=noninteractive

say() { printf '\033[1m▸ %s\033[0m\n' "$*" >&2; }

give_up() {
  printf '%s\n' "$@" >&2
  exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif have sudo; then
    sudo --preserve-env=DEBIAN_FRONTEND "$@"
  else
    give_up "This needs root or sudo: $*"
  fi
}

# need_packages WHY PACKAGE…
need_packages() {
  local why=$1
  shift
  have apt-get || give_up "Missing: $* ($why). Without apt-get here, please install them by hand."
  say "installing $* ($why)"
  # Lists may be older than the mirror; once a run is enough.
  if [ -z "${package_lists_are_fresh:-}" ]; then
    as_root apt-get update -q >&2
    package_lists_are_fresh=yes
  fi
  as_root apt-get install -q -y --no-install-recommends "$@" >&2
}

need_cargo() {
  have cargo || [ ! -x "$HOME/.cargo/bin/cargo" ] || export PATH="$HOME/.cargo/bin:$PATH"
  have cargo || give_up \
    "Tollkeeper is built with Rust, and there is no cargo here." \
    "Install it with rustup, then run this again:" \
    "    curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh"
  have cc || need_packages "a C compiler, for SQLite and cryptography" build-essential
}

# need_component PROGRAM COMPONENT: of the Rust toolchain, which minimal installations leave out.
need_component() {
  have "$1" && "$1" --version >/dev/null 2>&1 && return
  have rustup || give_up "Missing: $1, a part of the Rust toolchain."
  say "adding $2 to the Rust toolchain"
  rustup component add "$2" >&2
}

# A compiler for the browser: rustup's target, else Debian's own toolchain, which `cargo xtask` then finds.
need_wasm_compiler() {
  local target=wasm32-unknown-unknown
  [ -d "$(rustc --print target-libdir --target "$target" 2>/dev/null)" ] && return
  if have rustup; then
    say "adding the target $target to the Rust toolchain (for the browser's part)"
    rustup target add "$target" >&2 && return
    say "that did not work; taking Debian's toolchain for it"
  fi
  [ -d /usr/lib/rustlib/src/rust/library/std ] && [ -x /usr/bin/cargo ] && have rust-lld ||
    need_packages "the compiler for the browser's part" rustc-web cargo-web rust-web-src lld-22
}

node_major() { node --version 2>/dev/null | sed -E 's/^v([0-9]+).*/\1/'; }

# need_node VERSION: this major version or newer. Debian's own is taken where it is new enough, else one
# from npm, kept below target/.
need_node() {
  have node && have npm || need_packages "wasm-opt and the browser tests run on it" nodejs npm
  [ "$(node_major)" -ge "$1" ] && return
  local tools="$PWD/target/tools"
  if [ ! -x "$tools/node_modules/node/bin/node" ]; then
    say "node $(node --version) is older than $1; installing a newer one into target/tools"
    mkdir -p "$tools"
    npm install --silent --no-save --prefix "$tools" node@20.20.2 >&2
  fi
  export PATH="$tools/node_modules/node/bin:$PATH"
}

# need_npm_packages FOLDER: exactly what its lock file names.
need_npm_packages() {
  [ "$1/node_modules/.package-lock.json" -nt "$1/package-lock.json" ] && return
  say "installing the npm packages of $1"
  (cd "$1" && PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 npm ci --silent) >&2
}

# need_python_packages FILE: exactly what it names, in an environment of its own below target/, which is then
# $python_environment.
need_python_packages() {
  python_environment="$PWD/target/tools/python"
  cmp -s "$1" "$python_environment/installed.txt" && return
  python3 -c 'import ensurepip, venv' 2>/dev/null || need_packages "the tests of clients" python3 python3-venv
  say "installing the Python packages of $1 (a minute or two, once)"
  rm -rf "$python_environment"
  python3 -m venv "$python_environment"
  "$python_environment/bin/pip" install --quiet --disable-pip-version-check -r "$1" >&2
  cp "$1" "$python_environment/installed.txt"
}

need_nextest() {
  cargo nextest --version >/dev/null 2>&1 && return
  say "installing cargo-nextest, the test runner (some minutes, once)"
  cargo install --locked cargo-nextest >&2
}

need_chromium() {
  [ -n "${CHROMIUM:-}" ] || [ -x /usr/bin/chromium ] || need_packages "the browser tests drive it" chromium
}

# The servers' programs alone: tests start instances of their own.
need_databases() {
  local postgres=(/usr/lib/postgresql/*/bin/postgres)
  [ -n "${TEST_POSTGRES_URL:-}" ] || have postgres || [ -x "${postgres[0]}" ] ||
    need_packages "tests run on it beside SQLite" postgresql
  have redis-server || need_packages "tests of shared limits" redis-server
}

# A PostgreSQL of our own, with its data in a temporary folder, named by TEST_POSTGRES_URL. One that this names
# already is taken instead.
start_postgres() {
  [ -z "${TEST_POSTGRES_URL:-}" ] || return 0
  local programs
  # Its companions are where a link to it leads.
  programs=$(dirname "$(realpath "$(have postgres && command -v postgres || ls /usr/lib/postgresql/*/bin/postgres | tail -n 1)")")
  postgres_folder=$(mktemp -d)
  # It refuses to run as root; Debian's package made a user for it.
  local run=()
  if [ "$(id -u)" = 0 ]; then
    chown postgres "$postgres_folder"
    run=(setpriv --reuid=postgres --regid=postgres --clear-groups)
  fi
  say "starting PostgreSQL for the tests"
  "${run[@]}" "$programs/initdb" --pgdata="$postgres_folder/data" --auth=trust --username=postgres --no-sync >/dev/null
  # A port that is free now; nothing is kept, so nothing has to reach the disk.
  local port
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  "${run[@]}" "$programs/postgres" -D "$postgres_folder/data" -k "$postgres_folder" -h 127.0.0.1 -p "$port" \
    -c fsync=off -c full_page_writes=off -c max_connections=400 >"$postgres_folder/log" 2>&1 &
  postgres_pid=$!
  for _ in $(seq 100); do
    "$programs/pg_isready" -q -h 127.0.0.1 -p "$port" -U postgres && break
    kill -0 "$postgres_pid" 2>/dev/null || give_up "PostgreSQL did not start:" "$(tail -n 5 "$postgres_folder/log")"
    sleep 0.1
  done
  export TEST_POSTGRES_URL="postgres://postgres@127.0.0.1:$port/postgres"
}

stop_postgres() {
  [ -n "${postgres_pid:-}" ] || return 0
  # Fast shutdown: what is connected is cut off.
  kill -INT "$postgres_pid" 2>/dev/null && wait "$postgres_pid" 2>/dev/null
  rm -rf "$postgres_folder"
  postgres_pid=
}
