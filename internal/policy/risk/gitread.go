package risk

import (
	"slices"
	"strings"
)

// A gitReader is a subcommand that only reads, given options it is known to
// take.
type gitReader struct {
	options
	most  int // operands it may have; 0 is any number, -1 none
	check func(fs []found, operands []arg) bool
}

// diffing are the subcommands that show differences, and so might run what the
// repository configures for that.
var diffing = set("diff log show whatchanged diff-tree diff-index diff-files")

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

var gitReaders = map[string]gitReader{
	"status":        {options: known("sbvzunoalrm", "", "short branch porcelain[= long verbose show-stash untracked-files[= ignored[= null ahead-behind no-ahead-behind column[= no-column renames no-renames")},
	"diff":          {options: known(diffFlags, diffValues, diffLong)},
	"log":           {options: known(diffFlags+"gciEFmq", diffValues+"nL", logLong)},
	"show":          {options: known(diffFlags+"cmq", diffValues+"n", logLong)},
	"whatchanged":   {options: known(diffFlags+"cm", diffValues+"n", logLong)},
	"diff-tree":     {options: known(diffFlags+"rtmcv", diffValues, diffLong+"root stdin no-commit-id always")},
	"diff-index":    {options: known(diffFlags+"m", diffValues, diffLong)},
	"diff-files":    {options: known(diffFlags+"q0123", diffValues, diffLong)},
	"shortlog":      {options: known("nsec", "w", "numbered summary email group= format= since= until= all no-merges merges author=")},
	"ls-files":      {options: known("cdmoiskutvfz", "xX", "cached deleted modified others ignored stage unmerged killed directory exclude-standard exclude= exclude-from= error-unmatch full-name abbrev[= eol deduplicate format= others")},
	"ls-tree":       {options: known("drtlz", "", "long name-only name-status full-name full-tree abbrev[= format= object-only")},
	"rev-parse":     {options: known("q", "", "show-toplevel show-prefix show-cdup git-dir git-common-dir absolute-git-dir abbrev-ref[= short[= verify quiet is-inside-work-tree is-inside-git-dir is-bare-repository is-shallow-repository symbolic symbolic-full-name all branches[= tags[= remotes[= show-superproject-working-tree show-object-format[= git-path=")},
	"rev-list":      {options: known("n#", "n", logLong+"objects no-object-names quiet timestamp header all disk-usage[=")},
	"merge-base":    {options: known("a", "", "all octopus is-ancestor independent fork-point")},
	"name-rev":      {options: known("", "", "tags refs= all name-only always no-undefined")},
	"describe":      {options: known("", "", "tags all contains long always abbrev[= match= exclude= first-parent exact-match candidates= debug")}, // not "dirty": it runs git within submodules, and what is configured there
	"blame":         {options: known("bceflnpstwM#C", "LS", "line-porcelain porcelain incremental root show-stats show-name show-number show-email date= since= abbrev[= ignore-rev= no-textconv reverse first-parent")},
	"grep":          {options: known("nilLcvwhHEFGPoaIpqWz#r", "ABCefm", "line-number count ignore-case files-with-matches name-only files-without-match word-regexp invert-match extended-regexp fixed-strings perl-regexp cached untracked no-index and or not all-match heading break column color[= no-color max-depth= max-count= show-function function-context no-textconv context= after-context= before-context= quiet only-matching null text")},
	"cat-file":      {options: known("tspe", "", "batch-check[= batch[= unordered buffer batch-all-objects")},
	"show-ref":      {options: known("dqs", "", "head heads branches tags dereference hash[= verify quiet abbrev[= exists")},
	"for-each-ref":  {options: known("", "", "count= sort= format= points-at= merged[= no-merged[= contains[= no-contains[= ignore-case omit-empty exclude=")},
	"check-ignore":  {options: known("qvnz", "", "quiet verbose stdin no-index non-matching")},
	"check-attr":    {options: known("az", "", "all cached stdin source=")},
	"count-objects": {options: known("vH", "", "verbose human-readable"), most: -1},
	"version":       {options: known("", "", "build-options"), most: -1},
	"var":           {options: known("l", "", ""), most: 1},

	"branch":   {options: known("avrliq", "", "all verbose remotes list show-current no-color color[= column[= no-column sort= format= contains[= no-contains[= merged[= no-merged[= points-at= ignore-case abbrev[= no-abbrev"), check: listsRefs},
	"tag":      {options: known("lni#", "", "list sort= format= contains[= no-contains[= merged[= no-merged[= points-at= ignore-case column[= no-column color[="), check: listsRefs},
	"remote":   {options: known("v", "", "verbose push all"), check: onlyAsks("get-url")},
	"stash":    {options: known("pu", "", "stat[= patch name-only name-status include-untracked oneline"), check: onlyOne("list", "show")},
	"reflog":   {options: known("#", "n", "oneline max-count= date= all pretty[= format= decorate[="), check: onlyOne("show", "exists", "")},
	"worktree": {options: known("vz", "", "porcelain verbose"), check: onlyOne("list")},
	"config":   {options: known("lz", "", "list get get-all get-regexp local global system worktree name-only show-origin show-scope null type= bool int path default="), check: getsConfig},
}

// gitReads reports whether a subcommand only reads, with the options before it.
func (w *walker) gitReads(global []found, sub string, args []arg) bool {
	for _, f := range global {
		switch f.name {
		case "no-pager", "P", "no-optional-locks", "literal-pathspecs", "no-replace-objects", "glob-pathspecs", "icase-pathspecs", "noglob-pathspecs":
		case "C":
			if !f.value.exact() || slices.ContainsFunc(w.places(f.value), func(p string) bool { return !w.facts.isInside(p) }) {
				return false
			}
		default:
			return false
		}
	}
	r, ok := gitReaders[sub]
	if !ok || !literals(args) {
		return false
	}
	fs, operands, ok := r.interspersed(args)
	switch {
	case slices.ContainsFunc(fs, func(f found) bool {
		return strings.Contains(f.value.text, "%G") || strings.Contains(f.value.text, "%(signature")
	}):
		return false // asks for signatures, which another program checks
	case !ok, r.most != 0 && len(operands) > max(r.most, 0):
		return false
	case r.check != nil:
		return r.check(fs, operands)
	}
	return true
}

// listsRefs: an operand is a pattern if a list is asked for, else a new name.
func listsRefs(fs []found, operands []arg) bool {
	return len(operands) == 0 || has(fs, "l", "list", "contains", "no-contains", "merged", "no-merged", "points-at") && !has(fs, "u")
}

// onlyOne allows the first operand to be one of these; "" stands for none.
func onlyOne(words ...string) func([]found, []arg) bool {
	return func(_ []found, operands []arg) bool {
		if len(operands) == 0 {
			return slices.Contains(words, "")
		}
		return operands[0].is(words...)
	}
}

func onlyAsks(word string) func([]found, []arg) bool {
	return func(_ []found, operands []arg) bool { return len(operands) == 0 || operands[0].is(word) }
}

// getsConfig: a second operand is a new value, unless one is asked for by name.
func getsConfig(fs []found, operands []arg) bool {
	if has(fs, "l", "list") {
		return len(operands) == 0
	}
	if has(fs, "get", "get-all", "get-regexp") {
		return len(operands) <= 2
	}
	return len(operands) == 2 && operands[0].is("get") || len(operands) == 1 && (operands[0].is("list") || strings.Contains(operands[0].text, "."))
}
