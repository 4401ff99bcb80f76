#compdef coder coder-agent
# Completion of coder for zsh. Put it into a folder of $fpath as _coder, or load it
# after compinit with: source <(coder completion zsh)
_coder() {
	local -a lines described
	local line
	lines=("${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
	for line in $lines; do
		case $line in
		:files) _files ;;
		:dirs) _files -/ ;;
		?*) described+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
		esac
	done
	(( ${#described} )) && _describe -V coder described
	return 0
}
if [[ $funcstack[1] == _coder ]]; then
	_coder "$@"
else
	compdef _coder coder coder-agent
fi
