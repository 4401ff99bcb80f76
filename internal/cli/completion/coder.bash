# Completion of coder for bash. Load it with: eval "$(coder completion bash)"
_coder() {
	local out line word cut i n=-1 words=()
	COMPREPLY=()
	# Bash parts words at colons, which names of models have: the program gets them whole,
	# and what stands before the last piece is cut off its answers.
	for ((i = 1; i <= COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		cut=
		if ((n >= 0)) && [[ $word == : || ${words[n]} == *: ]]; then
			[[ $word == : ]] || cut=${words[n]}
			words[n]+=$word
			cut=${cut:-${words[n]}}
		else
			words[++n]=$word
		fi
	done
	out=$("${COMP_WORDS[0]}" __complete "${words[@]}" 2>/dev/null) || return 0
	word=${COMP_WORDS[COMP_CWORD]}
	[[ $word == = ]] && word=
	while IFS= read -r line; do
		case $line in
		:files) _coder_paths -f "$word" ;;
		:dirs) _coder_paths -d "$word" ;;
		?*)
			line=${line%%$'\t'*}
			COMPREPLY+=("${line#"$cut"}")
			;;
		esac
	done <<<"$out"
	[[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
	return 0
}
# A name a line: blanks in it do not part it.
_coder_paths() {
	local name
	while IFS= read -r name; do
		COMPREPLY+=("$name")
	done < <(compgen "$1" -- "$2")
	compopt -o filenames 2>/dev/null
}
complete -F _coder coder coder-agent
