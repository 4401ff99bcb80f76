package risk

import "strings"

var gitConfigOptions = known("lzfe", "f", "list get get-all get-regexp get-urlmatch get-color get-colorbool unset unset-all rename-section remove-section add replace-all edit append all regexp "+
	"fixed-value local global system worktree name-only show-names show-origin show-scope includes no-includes null bool int bool-or-int bool-or-str path expiry-date no-type "+
	"file= blob= type= default= value= comment= url=")

// gitConfig judges a setting that is written down: from then on, git runs what
// some of them name.
func (w *walker) gitConfig(args []arg) {
	fs, ops, ok := gitConfigOptions.interspersed(args)
	if !ok {
		ops = operandsOnly(args)
	}
	if has(fs, "l", "list", "get", "get-all", "get-regexp", "get-urlmatch", "get-color", "get-colorbool", "unset", "unset-all", "rename-section", "remove-section") {
		return
	}
	if len(ops) > 0 && ops[0].is("get", "list", "unset", "edit", "rename-section", "remove-section") {
		return
	}
	if len(ops) > 0 && ops[0].is("set") {
		ops = ops[1:]
	}
	for i := range ops {
		if i+1 < len(ops) && (i == 0 || !ok) {
			key, value := ops[i], ops[i+1]
			name := strings.ToLower(key.text)
			w.gitValue(name, value)
			if !key.exact() || plants(name, value) {
				w.find(Approve, "plants commands that run later", "git config "+joined(args))
			}
		}
	}
}

// gitSources are settings that name a place from which git takes commands.
var gitSources = set("core.hookspath core.gitproxy core.alternaterefscommand init.templatedir include.path uploadpack.packobjectshook")

// plants reports whether git would run the value of a setting, or what it
// leads to.
func plants(key string, value arg) bool {
	first, _, _ := strings.Cut(key, ".")
	last := key[strings.LastIndexByte(key, '.')+1:]
	switch {
	case value.is("true", "false", ""):
		return first == "alias"
	case (last == "pager" || last == "editor" || first == "pager") && value.is("cat", "less", "more", "vim", "vi", "nano", "emacs"):
		return false
	case last == "helper" && value.exact() && strings.Trim(value.text, "abcdefghijklmnopqrstuvwxyz-") == "":
		return false // one that comes with git
	}
	return gitSources[key] || gitPrograms[last] || first == "alias" || first == "filter" || first == "pager" || first == "includeif" ||
		strings.HasPrefix(value.text, "!") || last == "uploadpack" || last == "receivepack"
}
