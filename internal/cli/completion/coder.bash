# Completion of coder for bash. Load it with: eval "$(coder completion bash)"
_coder() {
	local out line word
	COMPREPLY=()
	out=$("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null) || return 0
	word=${COMP_WORDS[COMP_CWORD]}
	[[ $word == = ]] && word=
	while IFS= read -r line; do
		case $line in
		:files) COMPREPLY+=($(compgen -f -- "$word")); compopt -o filenames 2>/dev/null ;;
		:dirs) COMPREPLY+=($(compgen -d -- "$word")); compopt -o filenames 2>/dev/null ;;
		?*) COMPREPLY+=("${line%%$'\t'*}") ;;
		esac
	done <<<"$out"
	[[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
	return 0
}
complete -F _coder coder
