#!/bin/sh
# Makes a checkout ready to run: Java for Spark, a virtual environment with headrace in it, and databases, a browser
# and a Kafka broker for tests.
#
#   scripts/setup.sh [java] [venv] [packages] [postgres] [mariadb] [chromium] [kafka]    all steps when none is named
#
# The Makefile calls it with the steps a target needs: `make demo` with java, venv and packages, `make test` with all.
# It is quiet about what is already there. It installs system packages (Java, PostgreSQL and MariaDB servers, a
# browser, and Debian's python3-venv) only with apt and only as root; elsewhere it says what to type. Without servers
# and browser everything works, and the tests that need them are skipped.
#
#   PYTHON               the interpreter to build the environment with; found when empty
#   VENV                 where the environment goes (.venv)
#   EXTRAS               the extras to install (dev); empty: headrace alone
#   LOCK                 the versions to install (requirements.lock); empty: the newest that pyproject.toml allows
#   JAVA_HOME            the Java to use, as for Spark itself
#   HEADRACE_SETUP_APT   "no": never install system packages
set -eu

cd "$(dirname "$0")/.."

VENV=${VENV:-.venv}
EXTRAS=${EXTRAS-dev}
LOCK=${LOCK-requirements.lock}
JAVA_WANTED=17

say() {
    printf 'headrace: %s\n' "$@"
}

# Each argument is a line.
fail() {
    printf 'headrace: %s\n' "$@" >&2
    exit 1
}

have() {
    command -v "$1" >/dev/null 2>&1
}

# Runs a command and shows that it is alive: on a terminal its last line and the seconds so far, elsewhere a line now
# and then. Its output goes to the file $1; the exit code is the command's.
show_progress_of() {
    progress_log=$1
    shift
    "$@" >>"$progress_log" 2>&1 </dev/null &
    child=$!
    # A shell's background jobs do not hear Ctrl-C.
    trap 'kill "$child" 2>/dev/null; exit 130' INT TERM
    seconds=0
    while kill -0 "$child" 2>/dev/null; do
        sleep 1
        seconds=$((seconds + 1))
        last=$(tail -n 1 "$progress_log" | cut -c 1-90)
        if [ -t 1 ]; then
            printf '\r\033[K  %d s  %s' "$seconds" "$last"
        elif [ $((seconds % 20)) -eq 0 ]; then
            printf '  %d s  %s\n' "$seconds" "$last"
        fi
    done
    [ ! -t 1 ] || printf '\r\033[K'
    trap - INT TERM
    wait "$child"
}

# ------------------------------------------------------------------------------------ system packages

may_use_apt() {
    [ "${HEADRACE_SETUP_APT:-yes}" != no ] && have apt-get && [ "$(id -u)" -eq 0 ]
}

# Installs the first of the named packages that apt has; false when there is none or apt fails.
apt_install_first_of() {
    apt_log=$(mktemp)
    # One unreachable source makes update fail while the others are good: let install decide.
    show_progress_of "$apt_log" env DEBIAN_FRONTEND=noninteractive apt-get update -q || true
    for package in "$@"; do
        if show_progress_of "$apt_log" env DEBIAN_FRONTEND=noninteractive \
            apt-get install -y -q --no-install-recommends "$package"; then
            rm -f "$apt_log"
            return 0
        fi
    done
    say "apt-get could not install any of: $*" >&2
    tail -n 5 "$apt_log" | sed 's/^/    /' >&2
    rm -f "$apt_log"
    return 1
}

# ---------------------------------------------------------------------------------------------- Java

# Prints the major version of a java program (8, 11, 17, ...); nothing when it does not run. macOS has a
# java that only says where to get one, so being there is not enough.
java_major() {
    "$1" -version 2>&1 </dev/null | sed -n 's/^[a-z]* version "\(1\.\)\{0,1\}\([0-9][0-9]*\).*/\2/p' | head -n 1
}

is_java_good() {
    [ -n "$1" ] && [ "$1" -ge "$JAVA_WANTED" ]
}

# Prints the home of a good Java that is installed but is not the one on PATH.
java_elsewhere() {
    if [ -x /usr/libexec/java_home ]; then
        /usr/libexec/java_home -v "$JAVA_WANTED+" 2>/dev/null && return
    fi
    for home in /usr/lib/jvm/* /opt/homebrew/opt/openjdk*/libexec/openjdk.jdk/Contents/Home \
        /usr/local/opt/openjdk*/libexec/openjdk.jdk/Contents/Home "$HOME"/.sdkman/candidates/java/current; do
        if [ -x "$home/bin/java" ] && is_java_good "$(java_major "$home/bin/java")"; then
            printf '%s\n' "$home"
            return
        fi
    done
}

how_to_install_java() {
    if have apt-get; then
        say "    sudo apt-get update && sudo apt-get install -y openjdk-$JAVA_WANTED-jre-headless" \
            "    (where apt does not have that one: default-jre-headless)"
    elif have dnf; then
        say "    sudo dnf install -y java-21-openjdk-headless"
    elif have brew; then
        # shellcheck disable=SC2016  # the user's shell expands it
        say "    brew install openjdk@$JAVA_WANTED" \
            '    export JAVA_HOME="$(brew --prefix openjdk@'"$JAVA_WANTED"')/libexec/openjdk.jdk/Contents/Home"'
    else
        say "    unpack a JDK $JAVA_WANTED or newer for this system, for example from https://adoptium.net" \
            "    export JAVA_HOME=/where/it/was/unpacked"
    fi
}

ensure_java() {
    if [ -n "${JAVA_HOME:-}" ]; then
        major=$(java_major "$JAVA_HOME/bin/java")
        is_java_good "$major" && return
        [ -z "$major" ] || major="Java $major"
        fail "JAVA_HOME is $JAVA_HOME, which has ${major:-no Java that runs}." \
            "Spark takes its Java from there and needs $JAVA_WANTED or newer." \
            "Set JAVA_HOME to such a Java, or unset it, and run make again."
    fi

    major=$(java_major java)
    is_java_good "$major" && return

    elsewhere=$(java_elsewhere)
    if [ -n "$elsewhere" ]; then
        fail "Spark needs Java $JAVA_WANTED or newer. There is one, but not on PATH. Type this and run make again:" \
            "    export JAVA_HOME=$elsewhere"
    fi
    if may_use_apt; then
        say "Spark needs Java $JAVA_WANTED or newer; installing it with apt-get ..."
        if apt_install_first_of "openjdk-$JAVA_WANTED-jre-headless" default-jre-headless; then
            hash -r
            major=$(java_major java)
            is_java_good "$major" && return
        fi
    fi
    if [ -n "$major" ]; then
        say "Spark needs Java $JAVA_WANTED or newer; the java on PATH is $major. Install one:" >&2
    else
        say "Spark needs Java $JAVA_WANTED or newer, and there is none on PATH. Install one:" >&2
    fi
    how_to_install_java >&2
    fail "Then run make again."
}

# ---------------------------------------------------------------------------------------- PostgreSQL

# The tests start a server of their own; what they need are its programs.
have_postgres() {
    have initdb && have postgres && return
    for bin in /usr/lib/postgresql/*/bin /opt/homebrew/opt/postgresql*/bin /usr/local/opt/postgresql*/bin; do
        [ -x "$bin/initdb" ] && return
    done
    return 1
}

ensure_postgres() {
    have_postgres && return
    if may_use_apt; then
        say "Tests of databases need a PostgreSQL server; installing it with apt-get ..."
        apt_install_first_of postgresql && have_postgres && return
    fi
    say "No PostgreSQL server found: the tests that need one are skipped. To run them, install it" \
        "    (apt, dnf: postgresql-server or postgresql; brew: postgresql@17) and put initdb on PATH."
}

# ------------------------------------------------------------------------------------------- MariaDB

have_mariadb() {
    have mariadbd || [ -x /usr/sbin/mariadbd ]
}

ensure_mariadb() {
    have_mariadb && return
    if may_use_apt; then
        say "Tests of databases need a MariaDB server; installing it with apt-get ..."
        apt_install_first_of mariadb-server && have_mariadb && return
    fi
    say "No MariaDB server found: the tests that need one are skipped. To run them, install it" \
        "    (apt, dnf: mariadb-server; brew: mariadb)."
}

# ------------------------------------------------------------------------------------------ Chromium

have_chromium() {
    for name in chromium chromium-browser google-chrome google-chrome-stable; do
        have "$name" && return
    done
    return 1
}

ensure_chromium() {
    have_chromium && return
    if may_use_apt; then
        say "Tests of the web UI need a browser; installing Chromium with apt-get ..."
        # Ubuntu's chromium is a snap in disguise, which a container cannot run: tests say so and skip.
        apt_install_first_of chromium && have_chromium && return
    fi
    say "No Chromium found: the tests of the web UI are skipped. To run them, install it" \
        "    (apt, dnf, brew: chromium) and put it on PATH."
}

# -------------------------------------------------------------------------------------------- Python

# $1 runs and is between 3.11 and 3.$2.
is_python_good() {
    "$1" -c "import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, $2))" >/dev/null 2>&1 </dev/null
}

# Sets PYTHON. The plain python3 comes first, since it is what the user sees; then the versions by how
# widely the dependencies are built for them. pyspark 4.3 names 3.11 to 3.14.
find_python() {
    if [ -n "${PYTHON:-}" ]; then
        is_python_good "$PYTHON" 99 && return
        fail "PYTHON=$PYTHON is not a Python 3.11 or newer that runs."
    fi
    for PYTHON in python3 python3.12 python3.13 python3.11 python3.14 python; do
        is_python_good "$PYTHON" 14 && return
    done
    found=$(python3 --version 2>/dev/null || true)
    fail "Python 3.11 to 3.14 is needed; python3 on PATH is ${found:-missing}." \
        "Install one (apt: python3.12 python3.12-venv, dnf: python3.12, brew: python@3.12)" \
        "and run make again, with PYTHON=/path/to/python if it is not on PATH."
}

# Debian and Ubuntu leave ensurepip out of python3; without it an environment has no pip.
ensure_ensurepip() {
    "$PYTHON" -c 'import ensurepip, venv' >/dev/null 2>&1 && return
    version=$("$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    prefix=$("$PYTHON" -c 'import sys; print(sys.base_prefix)')
    if [ "$prefix" = /usr ] && have apt-get; then
        if may_use_apt; then
            say "This Python cannot make virtual environments; installing python$version-venv with apt-get ..."
            if apt_install_first_of "python$version-venv" python3-venv &&
                "$PYTHON" -c 'import ensurepip, venv' >/dev/null 2>&1; then
                return
            fi
        fi
        fail "$PYTHON cannot make virtual environments. Type this and run make again:" \
            "    sudo apt-get update && sudo apt-get install -y python$version-venv"
    fi
    fail "$PYTHON (in $prefix) has no ensurepip, so it cannot make virtual environments." \
        "Run make again with PYTHON=/path/to/another/python."
}

ensure_venv() {
    if is_python_good "$VENV/bin/python" 99 && "$VENV/bin/python" -m pip --version >/dev/null 2>&1; then
        return
    fi
    find_python
    ensure_ensurepip
    # What is there, if anything, was left half made or lost the interpreter it was made from.
    say "Making a virtual environment in $VENV with $("$PYTHON" --version) ..."
    "$PYTHON" -m venv --clear "$VENV"
}

install_packages() {
    what=headrace${EXTRAS:+[$EXTRAS]}
    if "$VENV/bin/python" -c 'import pyspark' >/dev/null 2>&1; then
        say "Installing $what in $VENV ..."
    else
        say "Installing $what in $VENV (Spark alone is 400 MB: this takes some minutes the first time) ..."
    fi
    pip_log=$(mktemp)
    if show_progress_of "$pip_log" "$VENV/bin/python" -m pip install --no-input --disable-pip-version-check \
        ${LOCK:+--constraint "$LOCK"} --editable ".${EXTRAS:+[$EXTRAS]}"; then
        rm -f "$pip_log"
        return
    fi
    tail -n 20 "$pip_log" | sed 's/^/    /' >&2
    fail "pip could not install the packages; the end of its output is above, all of it in $pip_log." \
        "Run make again to resume."
}

# Tests would fetch the broker themselves when they need it first, and wait for it.
ensure_kafka() {
    missing=$("$VENV/bin/python" -m tests.kafka 2>&1) || say "No Kafka for tests: ${missing##*Error: }" \
        "    The tests that need a broker try again, and are skipped if it is still missing."
}

[ $# -gt 0 ] || set -- java venv packages postgres mariadb chromium kafka
for step in "$@"; do
    case $step in
        java) ensure_java ;;
        venv) ensure_venv ;;
        packages) install_packages ;;
        postgres) ensure_postgres ;;
        mariadb) ensure_mariadb ;;
        chromium) ensure_chromium ;;
        kafka) ensure_kafka ;;
        *) fail "unknown step '$step'; the steps are: java venv packages postgres mariadb chromium kafka" ;;
    esac
done
