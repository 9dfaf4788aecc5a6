# sbeetctl.bash: completion for bash, with or without the package bash-completion.
#
# Verbs and options are what the sbeetctl at hand says in its help, so they are never out of date;
# only the values of a few options stand here (the test 'completion' tries each of them).

# Words that $1, a sbeetctl, knows as verbs.
_sbeetctl_verbs() {
	"$1" help 2>/dev/null | sed -n '/^Verbs:/,/^$/s/^  \([a-z][a-z -]*[a-z]\)   *[^ ].*/\1/p'
}

# Options of the verb $2 (none: of all), one a line: "-j --json[=FORM]", "--task=NAME".
_sbeetctl_options() {
	# a verb may be two words
	# shellcheck disable=SC2086
	"$1" help $2 2>/dev/null | sed -nE 's/^  (-.), (--[^ ]+).*/\1 \2/p; s/^      (--[^ ]+).*/\1/p'
}

# The kinds of events that $1 knows.
_sbeetctl_kinds() {
	"$1" help monitor 2>/dev/null | sed -n '/^Kinds:/,/;/{s/^Kinds://;s/;.*//;s/,/ /g;p}'
}

# The columns of the list that the verb $2 $3 prints; the daemon has to be there.
_sbeetctl_columns() {
	[[ ${3:-} == list ]] || return
	"$1" "$2" list --columns='?' 2>&1 >/dev/null | sed -n 's/.*there are: *//p'
}

# What may follow the option $1 (with its dashes), whose value is called $2; $3 is the sbeetctl, $4 the
# verb.
_sbeetctl_values() {
	case $1 in
	--format | -f) echo 'chrome csv html' ;;
	--policy | -p) _sbeetctl_policies "$3" && echo 'mps mps-25 mps-33 mps-50 mps-75 mps-level share' ;;
	--gpu | -g) _sbeetctl_ids "$3" gpu ;;
	--task | -t | --beside) _sbeetctl_ids "$3" task ;;
	--kind | -k) _sbeetctl_kinds "$3" ;;
	--columns | --sort) _sbeetctl_columns "$3" $4 ;;
	--json | -j) echo 'short pretty off' ;;
	--color) echo 'auto always never' ;;
	--class) echo 'realtime best-effort' ;;
	--scope) echo 'process thread' ;;
	--job) echo 'auto marks operation' ;;
	--generator) echo 'table-4.2 figure-4.13' ;;
	--epsilon) echo measured ;;
	--log) echo 'error warn info debug' ;;
	*) case $2 in FILE* | FOLDER* | PATH*) echo '<files>' ;; esac ;;
	esac
}

# The ids of the objects $2 that the daemon has now: the first column of their list.
_sbeetctl_ids() {
	"$1" "$2" list --quiet --no-legend 2>/dev/null | sed 's/^ *\([^ ]*\).*/\1/'
}

# The policies that $1 knows: its first table.
_sbeetctl_policies() {
	"$1" policy --quiet --no-legend 2>/dev/null | sed -n '/^$/q; s/ .*//p'
}

# The parameters of policies, as "reading=": its second table.
_sbeetctl_params() {
	"$1" policy --quiet --no-legend 2>/dev/null | sed '1,/^$/d; s/ .*/=/'
}

# Sets COMPREPLY to the candidates in $1 (words) that begin with $2.
_sbeetctl_reply() {
	local word

	for word in $1; do
		[[ $word == "$2"* ]] && COMPREPLY+=("$word")
	done
}

_sbeetctl_files() {
	local word

	compopt -o filenames 2>/dev/null
	while IFS= read -r word; do
		COMPREPLY+=("$word")
	done < <(compgen -f -- "$1")
}

# Of the options in $1 (lines) the value's name of $2: "", "NAME" or "[FORM]".
_sbeetctl_value_name() {
	local line letter

	while read -r letter line; do
		[[ $line ]] || line=$letter letter=
		if [[ $2 == "$letter" || $2 == "${line%%[\[=]*}" ]]; then
			case $line in
			*'[='*) line=${line#*\[=} && echo "[${line%\]}]" ;;
			*=*) echo "${line#*=}" ;;
			esac
			return
		fi
	done <<<"$1"
}

_sbeetctl() {
	local program=$1 cur=${COMP_WORDS[COMP_CWORD]} verb='' verbs options usage
	local option='' value='' i word n_plain=0 at_plain=0

	COMPREPLY=()
	type "$program" >/dev/null 2>&1 || program=sbeetctl
	verbs=$(_sbeetctl_verbs "$program")
	options=$(_sbeetctl_options "$program" '')

	# bash makes three words of "--json=short"
	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		if [[ $option ]]; then
			[[ $word == = ]] && continue
			option=
		elif [[ $word == -- ]]; then
			n_plain=$((n_plain + 1000))
		elif [[ $word == -* && $n_plain -lt 1000 ]]; then
			value=$(_sbeetctl_value_name "$options" "$word")
			if [[ ${COMP_WORDS[i + 1]} == = || ($value && $value != \[*) ]]; then
				option=$word
			fi
		elif [[ ! $verb ]]; then
			verb=$word
			if grep -q "^$verb ${COMP_WORDS[i + 1]:- }\$" <<<"$verbs" && ((i + 1 < COMP_CWORD)); then
				verb+=" ${COMP_WORDS[++i]}"
			fi
			options=$(_sbeetctl_options "$program" "$verb")
		else
			((n_plain % 1000 == 0)) && at_plain=$i
			n_plain=$((n_plain + 1))
		fi
	done

	# shellcheck disable=SC2086
	usage=$([[ $verb ]] && "$program" help $verb 2>/dev/null | head -n 1)
	if [[ $usage == *' [--] '* ]] && ((at_plain)); then
		# another program's command line
		if type _command_offset >/dev/null 2>&1; then
			_command_offset "$at_plain"
		else
			_sbeetctl_files "$cur"
		fi
	elif [[ $option ]]; then
		[[ $cur == = ]] && cur=
		value=$(_sbeetctl_values "$option" "$value" "$program" "$verb")
		case $option in
		--kind | -k | --columns) # lists: the next one behind a comma
			[[ $cur != *,* ]] || value=$(for word in $value; do echo "${cur%,*},$word"; done)
			;;
		esac
		if [[ $value == '<files>' ]]; then
			_sbeetctl_files "$cur"
		else
			_sbeetctl_reply "$value" "$cur"
		fi
	elif [[ $cur == -* && $n_plain -lt 1000 ]]; then
		# "--task=" goes on with the value, "--json" need not
		_sbeetctl_reply "$(sed -E 's/\[=.*//; s/=.*/=/' <<<"$options")" "$cur"
		[[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
	elif [[ ! $verb ]]; then
		_sbeetctl_reply "$(sed 's/ .*//' <<<"$verbs" | sort -u)" "$cur"
	elif ((n_plain % 1000 == 0)) && grep -q "^$verb " <<<"$verbs"; then
		_sbeetctl_reply "$(sed -n "s/^$verb //p" <<<"$verbs")" "$cur"
	elif [[ $usage == *' ID' || $usage == *' SESSION'* || $usage == *' GPU' || $usage == *'] NAME' ]]; then
		_sbeetctl_reply "$(_sbeetctl_ids "$program" "${verb%% *}")" "$cur"
	elif [[ $usage == *' [PROGRAM|PID|TASK]' || $usage == *' [TASK]' ]]; then
		_sbeetctl_reply "$(_sbeetctl_ids "$program" task)" "$cur"
	elif [[ $usage == *' [NAME [KEY=VALUE]...]' ]] && ((n_plain % 1000)); then
		_sbeetctl_reply "$(_sbeetctl_params "$program")" "$cur"
		compopt -o nospace 2>/dev/null
	elif [[ $usage == *' [NAME [KEY=VALUE]...]' ]]; then
		_sbeetctl_reply "$(_sbeetctl_policies "$program")" "$cur"
	elif [[ $usage == *'[VERB]'* ]]; then
		_sbeetctl_reply "$(sed 's/ .*//' <<<"$verbs" | sort -u)" "$cur"
	elif [[ $usage == *' [--] '* ]]; then
		_sbeetctl_reply "$(compgen -c -- "$cur")" "$cur"
		_sbeetctl_files "$cur"
	elif [[ $usage =~ \]\ .*(FILE|PROGRAM|\.json|\.csv) ]]; then
		_sbeetctl_files "$cur"
	fi
	return 0
}

complete -F _sbeetctl sbeetctl
