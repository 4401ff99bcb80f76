package risk

import (
	"path"
	"slices"
	"strings"
	"sync"
)

// gitOffsets are the offsets in the line before and after git's name and after its subcommand, where
// options can be inserted. They are zero if the position is unknown.
type gitOffsets struct {
	start, name, sub uint
	offOptions       string // options that keep the subcommand from running configured programs
}

var gitGlobal = newOptions("pPvh", "Cc",
	"no-pager paginate bare version help no-replace-objects literal-pathspecs no-optional-locks glob-pathspecs icase-pathspecs noglob-pathspecs html-path man-path info-path exec-path[= git-dir= work-tree= namespace= config-env= super-prefix= attr-source= list-cmds=")

// judgeGit judges a git command: what it discards, the commands in its options, and whether it only reads.
func (w *walker) judgeGit(args []arg) bool {
	at := len(w.report.Simple) - 1
	fs, rest, ok := gitGlobal.parseLeading(args[1:])
	if !ok || len(rest) > 0 && !rest[0].isExact() {
		return false
	}
	for _, f := range fs {
		if f.name == "c" {
			key, value, _ := strings.Cut(f.value.text, "=")
			w.judgeGitValue(strings.ToLower(key), arg{text: value, certainty: f.value.certainty})
		}
	}
	if len(rest) == 0 {
		return len(args) == 2 && args[1].isOneOf("--version", "-v")
	}
	sub, operands := rest[0].text, rest[1:]
	w.judgeGitRuns(sub, operands)
	if why := w.describeDiscard(sub, operands); why != "" {
		w.addFinding(Approve, why, joinWords(args))
	}
	// not a remote configured in the repository
	if sub == "push" && slices.ContainsFunc(dropOptions(operands), func(a arg) bool {
		host, _, far := strings.Cut(a.text, ":")
		return strings.Contains(a.text, "://") || strings.Contains(a.text, "::") || far && strings.Contains(host, "@")
	}) {
		w.addFinding(Approve, sendsData, joinWords(args))
	}
	if !w.gitReads(fs, sub, operands) {
		return false
	}
	// Options can be inserted only if the words are literally in the line itself.
	end, start := args[0].end, int(args[0].end)-len(args[0].text)
	if w.src != w.report.line || start < 0 || end > rest[0].end || int(rest[0].end) > len(w.src) ||
		w.src[start:end] != args[0].text {
		w.recordEffect("git may run what the repository configures")
		return false
	}
	if !w.readGitSettings(fs) {
		w.recordEffect("git may run what the repository configures")
		return false
	}
	w.report.Simple[at].git = gitOffsets{uint(start), end, rest[0].end, helperOptions()[sub]}
	return true
}

// readGitSettings reads the settings of the repository in which git runs with these flags, if it can.
func (w *walker) readGitSettings(fs []parsedOption) bool {
	to := arg{text: "."}
	for _, f := range fs {
		if f.name == "C" {
			to.text = path.Join(to.text, f.value.text)
			if path.IsAbs(f.value.text) {
				to.text = f.value.text
			}
		}
	}
	for _, dir := range w.possiblePaths(to) {
		if slices.Contains(w.gitDirs, dir) {
			continue
		}
		settings, err := w.facts.readGit(dir)
		if err != nil {
			return false
		}
		w.gitDirs = append(w.gitDirs, dir)
		w.report.git = append(w.report.git, settings...)
	}
	return true
}

var gitPrograms = wordList("pager editor sshcommand fsmonitor external textconv command cmd helper program askpass clean smudge process driver diffcommand")

func (w *walker) judgeGitValue(key string, value arg) {
	last := key[strings.LastIndexByte(key, '.')+1:]
	line, bang := strings.CutPrefix(value.text, "!")
	if bang || gitPrograms.has(last) || strings.HasPrefix(key, "pager.") {
		w.judgeLine(arg{text: line, certainty: value.certainty})
	}
}

func (w *walker) judgeGitRuns(sub string, args []arg) {
	switch sub {
	case "config":
		w.judgeGitConfig(args)
	case "submodule":
		if i := indexOf(args, "foreach"); i >= 0 {
			if args := dropOptions(args[i+1:]); len(args) > 0 {
				w.judgeLine(joinArgs(args))
			}
		}
	case "bisect":
		if len(args) > 1 && args[0].isOneOf("run") {
			w.judgeCommand(args[1:])
		}
	case "rebase", "filter-branch", "difftool", "mergetool", "grep":
		for i, a := range args {
			name, value, has := strings.Cut(a.text, "=")
			line := arg{text: value, certainty: a.certainty}
			switch {
			case name == "--exec" || name == "--extcmd" || strings.HasPrefix(name, "--") && strings.HasSuffix(name, "-filter"):
			case a.isOneOf("-x") || a.isOneOf("-c"):
			case strings.HasPrefix(a.text, "-O") || strings.HasPrefix(a.text, "-x"):
				line, has = arg{text: a.text[2:], certainty: a.certainty}, true
			default:
				continue
			}
			if !has && i+1 < len(args) {
				line = args[i+1]
			}
			w.judgeLine(line)
		}
	}
}

func indexOf(args []arg, word string) int {
	return slices.IndexFunc(args, func(a arg) bool { return a.isOneOf(word) })
}

// describeDiscard describes the work that a git command would discard or rewrite, or returns "".
func (w *walker) describeDiscard(sub string, args []arg) string {
	const uncommitted, history = "discards uncommitted changes", "rewrites history"
	switch sub {
	case "reset":
		return reasonIf(longOption(args, "--hard", "--merge", "--keep"), uncommitted)
	case "clean":
		return reasonIf(hasFlag(args, "f", "--force") && !hasFlag(args, "n", "--dry-run"), "removes untracked files")
	case "checkout":
		if hasFlag(args, "B", "") {
			return history
		}
		return reasonIf(hasFlag(args, "f", "--force") || anyEquals(args, "--", ".") ||
			longOption(args, "--pathspec-from-file", "--ours", "--theirs") || w.namesFile(args), uncommitted)
	case "switch":
		if hasFlag(args, "C", "--force-create") {
			return history
		}
		return reasonIf(hasFlag(args, "f", "--force") || longOption(args, "--discard-changes"), uncommitted)
	case "restore":
		return reasonIf(!hasFlag(args, "S", "--staged") || hasFlag(args, "W", "--worktree"), uncommitted)
	case "checkout-index", "read-tree":
		return reasonIf(hasFlag(args, "fu", "--reset") || longOption(args, "--force"), uncommitted)
	case "stash":
		return reasonIf(len(args) > 0 && args[0].isOneOf("drop", "clear"), "discards stashed changes")
	case "branch":
		return reasonIf(hasFlag(args, "DM", "") || hasFlag(args, "dmf", "--delete") && hasFlag(args, "f", "--force"),
			"deletes a branch that may not be merged")
	case "tag":
		return reasonIf(hasFlag(args, "df", "--delete") || longOption(args, "--force"), history)
	case "commit":
		return reasonIf(longOption(args, "--amend"), history)
	case "rm":
		return reasonIf(hasFlag(args, "f", "--force"), uncommitted)
	case "push":
		return reasonIf(hasFlag(args, "fd", "--force") || longOption(args, "--mirror", "--delete", "--prune",
			"--force-with-lease", "--force-if-includes", "--receive-pack", "--exec") ||
			slices.ContainsFunc(dropOptions(args), func(a arg) bool {
				return strings.HasPrefix(a.text, "+") ||
					strings.HasPrefix(a.text, ":")
			}), "rewrites history that others have")
	case "reflog", "update-ref":
		return reasonIf(anyEquals(args, "expire", "delete", "-d", "--stdin"), "discards history")
	case "filter-branch", "filter-repo", "replace", "fast-import":
		return history
	case "gc", "prune":
		return reasonIf(anyHasPrefix(args, "--prune=now", "--prune=all") || sub == "prune", "discards history")
	case "worktree":
		return reasonIf(anyEquals(args, "remove") && hasFlag(args, "f", "--force"), "removes a worktree with its changes")
	case "submodule":
		return reasonIf(anyEquals(args, "deinit") && hasFlag(args, "f", "--force"), uncommitted)
	case "lfs":
		return reasonIf(anyEquals(args, "prune"), "discards history")
	}
	return ""
}

// namesFile reports whether an operand of git checkout is an
// existing file, not a branch: its changes would be lost.
func (w *walker) namesFile(args []arg) bool {
	if hasFlag(args, "b", "--orphan") || longOption(args, "--detach", "--track") {
		return false
	}
	return slices.ContainsFunc(dropOptions(args), func(a arg) bool {
		return a.isExact() && slices.ContainsFunc(w.possiblePaths(a), w.facts.exists)
	})
}

// longOption reports whether one of longs is given, in full or abbreviated.
func longOption(args []arg, longs ...string) bool {
	return slices.ContainsFunc(args, func(a arg) bool {
		name, _, _ := strings.Cut(a.text, "=")
		return len(name) > 2 && strings.HasPrefix(name, "--") &&
			slices.ContainsFunc(longs, func(l string) bool { return strings.HasPrefix(l, name) })
	})
}

func reasonIf(yes bool, why string) string {
	if yes {
		return why
	}
	return ""
}

// hasFlag reports whether one of the short options, alone or combined, or the long one is given.
func hasFlag(args []arg, letters, long string) bool {
	for _, a := range args {
		if a.isOneOf("--") {
			return false
		}
		if long != "" && longOption([]arg{a}, long) || a.isExact() && a.isOption() && a.text[1] != '-' &&
			strings.ContainsAny(a.text[1:], letters) {
			return true
		}
	}
	return false
}

func anyHasPrefix(args []arg, prefixes ...string) bool {
	return slices.ContainsFunc(args, func(a arg) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(a.text, p) })
	})
}

var gitConfigOptions = newOptions("lzfe", "f",
	"list get get-all get-regexp get-urlmatch get-color get-colorbool unset unset-all rename-section remove-section add replace-all edit append all regexp "+
		"fixed-value local global system worktree name-only show-names show-origin show-scope includes no-includes null bool int bool-or-int bool-or-str path expiry-date no-type "+
		"file= blob= type= default= value= comment= url=")

// judgeGitConfig judges a new git setting: git later runs the value of some settings.
func (w *walker) judgeGitConfig(args []arg) {
	fs, ops, ok := gitConfigOptions.parseInterspersed(args)
	if !ok {
		ops = dropOptions(args)
	}
	if hasOption(fs, "l", "list", "get", "get-all", "get-regexp", "get-urlmatch", "get-color", "get-colorbool", "unset",
		"unset-all", "rename-section", "remove-section") {
		return
	}
	if len(ops) > 0 && ops[0].isOneOf("get", "list", "unset", "edit", "rename-section", "remove-section") {
		return
	}
	if len(ops) > 0 && ops[0].isOneOf("set") {
		ops = ops[1:]
	}
	for i := range ops {
		if i+1 < len(ops) && (i == 0 || !ok) {
			key, value := ops[i], ops[i+1]
			name := strings.ToLower(key.text)
			w.judgeGitValue(name, value)
			if !key.isExact() || plantsCommand(name, value) {
				w.addFinding(Approve, "installs commands that run later", "git config "+joinWords(args))
			}
		}
	}
}

// gitSources are settings that name a source of commands for git.
var gitSources = wordList("core.hookspath core.gitproxy core.alternaterefscommand init.templatedir include.path uploadpack.packobjectshook")

// plantsCommand reports whether git would run the value of a setting, or what it refers to.
func plantsCommand(key string, value arg) bool {
	first, _, _ := strings.Cut(key, ".")
	last := key[strings.LastIndexByte(key, '.')+1:]
	switch {
	case value.isOneOf("true", "false", ""):
		return first == "alias"
	case (last == "pager" || last == "editor" || first == "pager") &&
		value.isOneOf("cat", "less", "more", "vim", "vi", "nano", "emacs"):
		return false
	case last == "helper" && value.isExact() && strings.Trim(value.text, "abcdefghijklmnopqrstuvwxyz-") == "":
		return false // one of git's own
	}
	return gitSources.has(key) || gitPrograms.has(last) || first == "alias" || first == "filter" || first == "pager" ||
		first == "includeif" ||
		strings.HasPrefix(value.text, "!") || last == "uploadpack" || last == "receivepack"
}

// A gitReader is a subcommand that only reads with known options.
type gitReader struct {
	options
	maxOperands int // maximum operands; 0 is any number, -1 none
	check       func(fs []parsedOption, operands []arg) bool
}

// diffSubcommands are the subcommands that show differences and may run configured programs for that.
var diffSubcommands = wordList("diff log show whatchanged diff-tree diff-index diff-files")

const (
	diffFlags  = "puswbaRzMCDB#"
	diffValues = "UGSO"
	diffLong   = ` patch no-patch stat[= numstat shortstat dirstat[= summary name-only name-status color[= no-color color-words[= word-diff[= word-diff-regex=
		unified= raw minimal patience histogram diff-algorithm= find-renames[= find-copies[= no-renames ignore-all-space ignore-space-change
		ignore-space-at-eol ignore-blank-lines ignore-cr-at-eol diff-filter= exit-code quiet check full-index binary abbrev[= cached staged
		merge-base no-index function-context inter-hunk-context= relative[= no-prefix src-prefix= dst-prefix= no-ext-diff no-textconv
		compact-summary text reverse pickaxe-all pickaxe-regex follow ita-invisible-in-index `
	logLong = diffLong + ` oneline graph all branches[= tags[= remotes[= decorate[= no-decorate max-count= skip= since= after= until= before= author=
		committer= grep= invert-grep all-match regexp-ignore-case fixed-strings extended-regexp perl-regexp merges no-merges first-parent reverse
		topo-order date-order author-date-order pretty[= format= abbrev-commit no-abbrev-commit date= relative-date left-right cherry-pick
		cherry-mark cherry source notes[= no-notes children parents boundary simplify-by-decoration full-history ancestry-path[= not
		log-size no-walk[= walk-reflogs show-linear-break[= left-only right-only cc count `
)

var gitReaders = sync.OnceValue(func() map[string]gitReader {
	return map[string]gitReader{
		"status": {options: newOptions("sbvzunoalrm", "",
			"short branch porcelain[= long verbose show-stash untracked-files[= ignored[= null ahead-behind no-ahead-behind column[= no-column renames no-renames")},
		"diff":        {options: newOptions(diffFlags, diffValues, diffLong)},
		"log":         {options: newOptions(diffFlags+"gciEFmq", diffValues+"nL", logLong)},
		"show":        {options: newOptions(diffFlags+"cmq", diffValues+"n", logLong)},
		"whatchanged": {options: newOptions(diffFlags+"cm", diffValues+"n", logLong)},
		"diff-tree":   {options: newOptions(diffFlags+"rtmcv", diffValues, diffLong+"root stdin no-commit-id always")},
		"diff-index":  {options: newOptions(diffFlags+"m", diffValues, diffLong)},
		"diff-files":  {options: newOptions(diffFlags+"q0123", diffValues, diffLong)},
		"shortlog": {options: newOptions("nsec", "w",
			"numbered summary email group= format= since= until= all no-merges merges author=")},
		"ls-files": {options: newOptions("cdmoiskutvfz", "xX",
			"cached deleted modified others ignored stage unmerged killed directory exclude-standard exclude= exclude-from= error-unmatch full-name abbrev[= eol deduplicate format= others")},
		"ls-tree": {options: newOptions("drtlz", "",
			"long name-only name-status full-name full-tree abbrev[= format= object-only")},
		"rev-parse": {options: newOptions("q", "",
			"show-toplevel show-prefix show-cdup git-dir git-common-dir absolute-git-dir abbrev-ref[= short[= verify quiet is-inside-work-tree is-inside-git-dir is-bare-repository is-shallow-repository symbolic symbolic-full-name all branches[= tags[= remotes[= show-superproject-working-tree show-object-format[= git-path=")},
		"rev-list": {options: newOptions("n#", "n", logLong+
			"objects no-object-names quiet timestamp header all disk-usage[=")},
		"merge-base": {options: newOptions("a", "", "all octopus is-ancestor independent fork-point")},
		"name-rev":   {options: newOptions("", "", "tags refs= all name-only always no-undefined")},
		// not "dirty": it runs git in submodules, with their configuration
		"describe": {options: newOptions("", "",
			"tags all contains long always abbrev[= match= exclude= first-parent exact-match candidates= debug")},
		"blame": {options: newOptions("bceflnpstwM#C", "LS",
			"line-porcelain porcelain incremental root show-stats show-name show-number show-email date= since= abbrev[= ignore-rev= no-textconv reverse first-parent")},
		"grep": {options: newOptions("nilLcvwhHEFGPoaIpqWz#r", "ABCefm",
			"line-number count ignore-case files-with-matches name-only files-without-match word-regexp invert-match extended-regexp fixed-strings perl-regexp cached untracked no-index and or not all-match heading break column color[= no-color max-depth= max-count= show-function function-context no-textconv context= after-context= before-context= quiet only-matching null text")},
		"cat-file": {options: newOptions("tspe", "", "batch-check[= batch[= unordered buffer batch-all-objects")},
		"show-ref": {options: newOptions("dqs", "",
			"head heads branches tags dereference hash[= verify quiet abbrev[= exists")},
		"for-each-ref": {options: newOptions("", "",
			"count= sort= format= points-at= merged[= no-merged[= contains[= no-contains[= ignore-case omit-empty exclude=")},
		"check-ignore":  {options: newOptions("qvnz", "", "quiet verbose stdin no-index non-matching")},
		"check-attr":    {options: newOptions("az", "", "all cached stdin source=")},
		"count-objects": {options: newOptions("vH", "", "verbose human-readable"), maxOperands: -1},
		"version":       {options: newOptions("", "", "build-options"), maxOperands: -1},
		"var":           {options: newOptions("l", "", ""), maxOperands: 1},

		"branch": {options: newOptions("avrliq", "",
			"all verbose remotes list show-current no-color color[= column[= no-column sort= format= contains[= no-contains[= merged[= no-merged[= points-at= ignore-case abbrev[= no-abbrev"), check: listsRefs},
		"tag": {options: newOptions("lni#", "",
			"list sort= format= contains[= no-contains[= merged[= no-merged[= points-at= ignore-case column[= no-column color[="), check: listsRefs},
		"remote": {options: newOptions("v", "", "verbose push all"), check: acceptFirst("get-url", "")},
		"stash": {options: newOptions("pu", "", "stat[= patch name-only name-status include-untracked oneline"),
			check: acceptFirst("list", "show")},
		"reflog": {options: newOptions("#", "n", "oneline max-count= date= all pretty[= format= decorate[="),
			check: acceptFirst("show", "exists", "")},
		"worktree": {options: newOptions("vz", "", "porcelain verbose"), check: acceptFirst("list")},
		"config": {options: newOptions("lz", "",
			"list get get-all get-regexp local global system worktree name-only show-origin show-scope null type= bool int path default="), check: getsConfig},
	}
})

// gitReads reports whether a subcommand only reads with the global options before it.
func (w *walker) gitReads(global []parsedOption, sub string, args []arg) bool {
	for _, f := range global {
		switch f.name {
		case "no-pager", "P", "no-optional-locks", "literal-pathspecs", "no-replace-objects", "glob-pathspecs",
			"icase-pathspecs", "noglob-pathspecs":
		case "C":
			if !f.value.isExact() || slices.ContainsFunc(w.possiblePaths(f.value),
				func(p string) bool { return !w.facts.isInside(p) }) {
				return false
			}
		default:
			return false
		}
	}
	r, ok := gitReaders()[sub]
	if !ok || !allLiteral(args) {
		return false
	}
	fs, operands, ok := r.parseInterspersed(args)
	switch {
	case slices.ContainsFunc(fs, func(f parsedOption) bool {
		return strings.Contains(f.value.text, "%G") || strings.Contains(f.value.text, "%(signature")
	}):
		return false // it asks for signatures, which another program verifies
	case !ok, r.maxOperands != 0 && len(operands) > max(r.maxOperands, 0):
		return false
	case r.check != nil:
		return r.check(fs, operands)
	}
	return true
}

// listsRefs reports whether refs are only listed: an operand
// is a pattern with a list option, else a new name.
func listsRefs(fs []parsedOption, operands []arg) bool {
	return len(operands) == 0 || hasOption(fs, "l", "list", "contains", "no-contains", "merged", "no-merged",
		"points-at") && !hasOption(fs, "u")
}

// acceptFirst accepts one of words as the first operand; "" accepts none.
func acceptFirst(words ...string) func([]parsedOption, []arg) bool {
	return func(_ []parsedOption, operands []arg) bool {
		if len(operands) == 0 {
			return slices.Contains(words, "")
		}
		return operands[0].isOneOf(words...)
	}
}

// getsConfig reports whether a setting is only read: without a get option, a second operand is a new value.
func getsConfig(fs []parsedOption, operands []arg) bool {
	if hasOption(fs, "l", "list") {
		return len(operands) == 0
	}
	if hasOption(fs, "get", "get-all", "get-regexp") {
		return len(operands) <= 2
	}
	return len(operands) == 2 && operands[0].isOneOf("get") || len(operands) == 1 &&
		(operands[0].isOneOf("list") || strings.Contains(operands[0].text, "."))
}
