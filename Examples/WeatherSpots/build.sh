# Sourced by demo.sh, demo-sync.sh and page.sh: sets `configuration` and `programs`, the folder of what is built, and has the functions `build`,
# `heading`, `show` and `run`. LARDER_PROGRAMS names a folder of programs that are built already, as the tests have.
# shellcheck shell=bash

configuration=${CONFIGURATION:-debug}
programs=${LARDER_PROGRAMS:-$PWD/.build/$configuration}
flags=(-c "$configuration" -Xswiftc -gnone -Xcc -g0 -Xswiftc -Xfrontend -Xswiftc -disable-llvm-verify)
# A module is divided among the processors, and not into parts of 25 files: whoever compiles a part reads the whole module.
if [ "$configuration" = debug ]; then flags+=(-Xswiftc -driver-batch-size-limit -Xswiftc 1000); fi

# Builds a program into .build: writes a word for each package that is fetched and for each module that is compiled, and all lines if it fails.
# Planned anew each time, since SwiftPM takes the plan of another package that was built in the folder for this one's.
build() { # PRODUCT TIME [FLAGS...]
  local product=$1 time=$2 log=.build/build-$1.log
  if [ -n "${LARDER_PROGRAMS:-}" ]; then return; fi
  shift 2
  echo "Building $product. The first time takes $time on two cores."
  mkdir -p .build
  : >"$log"
  if ! swift build "${flags[@]}" --product "$product" --disable-build-manifest-caching "$@" 2>&1 | progress "$log"; then
    cat "$log" >&2
    exit 1
  fi
}

progress() { # LOG
  local line word kind previous="" known=" " column=0
  while IFS= read -r line; do
    printf '%s\n' "$line" >>"$1"
    case $line in
      "Fetching "*) kind=Fetching: word=${line##*/} word=${word%.git} ;;
      *"] Compiling "*) kind=Compiling: word=${line##*\] Compiling } ;;
      *"] Linking "*) kind=Compiling: word=linking ;;
      *) continue ;;
    esac
    word=${word%% *}
    # C is named by its file; the rest are the insides of packages.
    case $word in *.* | *_* | *ToolInfo | Internal* | Containers*) continue ;; esac
    case $known in *" $word "*) continue ;; esac
    known+="$word "
    if [ "$kind" != "$previous" ] || [ $((column + ${#word})) -gt 95 ]; then
      if [ "$column" -gt 0 ]; then echo; fi
      printf '  %s' "$kind"
      column=$((2 + ${#kind}))
    fi
    printf ' %s' "$word"
    column=$((column + 1 + ${#word}))
    previous=$kind
  done
  if [ "$column" -gt 0 ]; then echo; fi
}

heading() { if [ -t 1 ]; then printf '\n\033[1m== %s\033[0m\n' "$*"; else printf '\n== %s\n' "$*"; fi; }

# Writes a command as it can be typed.
show() { # ARGUMENTS...
  local word
  printf '$ weather-spots'
  for word in "$@"; do
    case $word in
      '|') printf ' |' ;;
      "\\") printf ' \\\n   ' ;;
      *[!A-Za-z0-9_.,:/=@+-]*) case $word in *"'"*) printf ' %q' "$word" ;; *) printf " '%s'" "$word" ;; esac ;;
      *) printf ' %s' "$word" ;;
    esac
  done
  echo
}

run() { # ARGUMENTS...
  show "$@"
  weather-spots "$@"
}
