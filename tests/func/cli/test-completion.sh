#!/bin/sh
# test-completion.sh SBEETCTL COMPLETION_DIR: what Tab offers, in bash and in zsh.
set -eu

sbeetctl=$1
dir=$2
command -v bash >/dev/null || { echo "no bash here"; exit 77; }

scratch=$(mktemp -d)
trap 'tmux -S "$scratch/tmux" kill-server 2>/dev/null || true; rm -rf "$scratch"' EXIT
cd "$scratch"
: >kernel.ptx
: >"two words.ptx"
mkdir folder
ln -s "$sbeetctl" sbeetctl

cat >complete.bash <<'END'
# complete.bash SCRIPT WORD...: the candidates for the last word, in bash's own splitting.
source "$1"
shift
COMP_WORDS=(./sbeetctl "$@")
COMP_CWORD=$#
_sbeetctl ./sbeetctl "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\n' "${COMPREPLY[@]}"
END

# One a line; some are two words.
"$sbeetctl" help | sed -n '/^Verbs:/,/^$/s/^  \([a-z][a-z -]*[a-z]\)  .*/\1/p' >verbs
[ "$(wc -l <verbs)" -ge 6 ]

failed=0
# offers WHAT WORD...: the candidates, in one line, are exactly these.
offers() {
	want=$1
	shift
	got=$(bash complete.bash "$dir/sbeetctl.bash" "$@" 2>&1 | sort | tr '\n' ' ' | sed 's/ $//')
	[ "$got" = "$want" ] || { echo "sbeetctl $*: expected '$want', got '$got'"; failed=1; }
}
# offers_also WHAT WORD...: this is one of the candidates.
offers_also() {
	want=$1
	shift
	bash complete.bash "$dir/sbeetctl.bash" "$@" 2>&1 | grep -qxF -e "$want" ||
		{ echo "sbeetctl $*: '$want' is not offered"; failed=1; }
}

# Verbs: all of them, from the table.
offers status st
offers "$(sed 's/ .*//' verbs | sort -u | tr '\n' ' ' | sed 's/ $//')" ''
offers run --quiet ru
offers 'ptx' --color = never pt
offers '' nonsense ''
offers version help v
offers "$(sed -n 's/^profile //p' verbs | sort | tr '\n' ' ' | sed 's/ $//')" profile ''
offers show profile sh

# Every option of every verb, as the help has it.
while read -r verb; do
	# shellcheck disable=SC2086
	offers "$("$sbeetctl" help $verb | sed -nE 's/^  (-., |    )(--[a-z-]+=?).*/\2/p' | sort |
		tr '\n' ' ' | sed 's/ $//')" $verb --
done <verbs
offers '--watch' status --w
offers '--period= --priority=' run --p
offers '--quiet' --qu
offers '-o' ptx -o

# Values.
offers 'off pretty short' status --json =
offers 'pretty' status --json = p
offers 'never' status --color n
offers 'best-effort realtime' run --class ''
offers 'chrome csv html' trace export --format = ''
policies=$("$sbeetctl" policy --json=short | tr '{' '\n' | sed -n 's/^"policy": *"\([^"]*\)".*/\1/p' | sort | tr '\n' ' ' | sed 's/ $//')
[ -n "$policies" ]
offers "$policies" policy ''
offers 'fcfs' policy fc
offers 'reading=' policy sbeet rea
simulated=$(echo "$policies mps mps-25 mps-33 mps-50 mps-75 mps-level share" | tr ' ' '\n' | sort | tr '\n' ' ')
offers "${simulated% }" simulate -p ''
offers 'thread' run --task = x --scope = t
offers 'figure-4.13 table-4.2' response-time --generator ''
offers 'measured' response-time --epsilon = m
offers 'kernel.ptx' ptx --output ker
offers 'kernel.ptx' ptx -o ker
offers '' ptx --entry = k

# Kinds of events: as the help has them, in a list too.
offers "$("$sbeetctl" help monitor | sed -n '/^Kinds:/,/;/p' | tr -d '\n' | sed 's/^Kinds: //; s/;.*//; s/, */\n/g' |
	sort | tr '\n' ' ' | sed 's/ $//')" monitor --kind ''
offers 'job-miss' monitor -k job-m
offers 'gpu,job-miss' monitor --kind = gpu,job-m

# Ids that the daemon has now.
cat >live <<'END'
#!/bin/sh
case "$1 $2 $3" in
'gpu list --columns=?') echo "sbeetctl: no column '?'; there are: index name power" >&2; exit 2 ;;
esac
case "$1 $2" in
'session list') printf '%s\n' '    1  camera  4711' '   12  train   4712' ;;
'gpu list') printf '%s\n' '  0  H200' '  1  T400' ;;
'task list') printf '%s\n' 'camera  realtime' 'train   best-effort' ;;
'job list') printf '%s\n' ' 1.18  a  camera' '12.3   -  train' ;;
*) exec "$REAL_SBEETCTL" "$@" ;;
esac
END
chmod +x live
REAL_SBEETCTL=$sbeetctl
export REAL_SBEETCTL
mv sbeetctl real && mv live sbeetctl
offers '1 12' session show ''
offers '12' session show 12
offers '1.18 12.3' job explain ''
offers '1.18' job show 1.
offers '0 1' gpu show ''
offers 'index name power' gpu list --columns = ''
offers 'index,power' gpu list --columns = index,p
offers 'name' gpu list --sort n
offers '0 1' gpu drain ''
offers '1' gpu resume 1
offers 'camera train' task show ''
offers 'camera train' task explain ''
offers 'camera' task set cam
offers '12' session kill 12
offers 'camera train' monitor --task ''
offers '0 1' monitor -g ''
mv real sbeetctl

# Files: programs and texts, names with spaces too.
offers 'kernel.ptx' ptx k
offers 'two words.ptx' ptx --json two
offers 'kernel.ptx' profile import ker
offers 'kernel.ptx' profile export ker
offers '' status k
offers 'folder' run ./sbeetctl fold
offers 'folder' run --task x -- ./sbeetctl fold
offers_also sort run sor
offers '' run ./sbeetctl --qu

# The values that the scripts know are values that sbeetctl takes.
for value in short pretty off; do
	"$sbeetctl" version --json="$value" >/dev/null || failed=1
done
for value in auto always never; do
	"$sbeetctl" version --color="$value" >/dev/null || failed=1
done
for pair in class=realtime class=best-effort scope=process scope=thread log=error log=warn log=info \
	log=debug; do
	"$sbeetctl" run --quiet --dry-run "--$pair" /bin/true >/dev/null 2>"$scratch/said" ||
		! grep -q 'bad value' "$scratch/said" || { cat "$scratch/said"; failed=1; }
done

for value in table-4.2 figure-4.13; do
	"$sbeetctl" response-time --sweep cpus=1 --tasksets 1 --generator "$value" >/dev/null || failed=1
done
"$sbeetctl" response-time --epsilon measured nothing.json 2>&1 | grep -q 'expected a time' && failed=1

# zsh: the script parses, and hands every verb and option on to _arguments.
if command -v zsh >/dev/null; then
	zsh -n "$dir/_sbeetctl" || failed=1
	sed '/^_sbeetctl "/d' "$dir/_sbeetctl" >functions.zsh
	printf '#!/bin/sh\necho "  7  camera"\n' >live
	chmod +x live
	[ "$(zsh -fc '. ./functions.zsh; _sbeetctl_ids ./live session')" = 7 ] || { echo "zsh: no ids"; failed=1; }
	zsh -fc '. ./functions.zsh; _sbeetctl_verbs ./sbeetctl' >described
	while read -r verb; do
		grep -q "^$verb:[a-z]" described || { echo "zsh: no verb '$verb'"; failed=1; }
		zsh -fc '. ./functions.zsh; _sbeetctl_options ./sbeetctl "$1"' - "$verb" >specs
		# shellcheck disable=SC2086
		for option in $("$sbeetctl" help $verb | sed -nE 's/^  (-., |    )(--[a-z-]+).*/\2/p'); do
			grep -qE -e "^$option(=-?)?\[.+\]" specs ||
				{ echo "zsh: '$verb' has no '$option'"; failed=1; }
		done
	done <verbs
fi

# The same at a real prompt of zsh, with the keys of a user.
press() { tmux -S "$scratch/tmux" send-keys "$@"; }

# TEXT TIMES: whether it is on the screen after so many looks at most
sees() {
	looks=0
	until tmux -S "$scratch/tmux" capture-pane -p >screen && grep -q -e "$1" screen; do
		looks=$((looks + 1))
		[ "$looks" -lt "$2" ] || return 1
		sleep 0.1
	done
}

# Each key waits for what the one before has done: a busy shell takes them for something else.
shows() { # TYPED TEXT: after one Tab, or more
	press C-u C-l
	sees '^ready> *$' 600 || { echo "zsh: no empty prompt:"; cat screen; failed=1; return; }
	press -l "$1"
	sees "^ready> ${1% }" 600 || { echo "zsh: '$1' is not echoed:"; cat screen; failed=1; return; }
	tabs=0
	press Tab
	until sees "$2" 20; do
		tabs=$((tabs + 1))
		[ "$tabs" -lt 30 ] || { echo "zsh: '$1', Tab, Tab does not show '$2':"; cat screen; failed=1; return; }
		press Tab
	done
}
if command -v zsh >/dev/null && command -v tmux >/dev/null; then
	cat >rc.zsh <<-END
		fpath=($dir \$fpath)
		autoload -U compinit
		compinit -u -D
		path=($scratch/bin \$path)
		setopt no_beep
		PS1='ready> '
	END
	mkdir bin
	ln -s "$sbeetctl" bin/sbeetctl
	tmux -S "$scratch/tmux" -f /dev/null new-session -d -x 120 -y 50 "zsh -f"
	sees '[%#] *$' 600 || { echo "zsh: no prompt:"; cat screen; failed=1; }
	press -l ". $scratch/rc.zsh"
	press Enter
	shows 'sbeetctl stat' '^ready> sbeetctl status'
	shows 'sbeetctl gpu ' '^drain  *-- '
	shows 'sbeetctl simulate --policy=' 'lookahead'
	shows 'sbeetctl status --json=' '^off  *pretty  *short'
	shows 'sbeetctl run --class ' '^best-effort  *realtime'
	shows 'sbeetctl run --per' '^ready> sbeetctl run --period='
	shows 'sbeetctl run -' '^--deadline  *-- '
	shows 'sbeetctl run --task x -- tru' '^ready> sbeetctl run --task x -- tru[en]'
	shows 'sbeetctl monitor -k gpu-d' '^ready> sbeetctl monitor -k gpu-drain'
	shows 'sbeetctl policy fc' '^ready> sbeetctl policy fcfs'
	shows 'sbeetctl policy sbeet rea' '^ready> sbeetctl policy sbeet reading='
	tmux -S "$scratch/tmux" kill-server
fi
exit $failed
