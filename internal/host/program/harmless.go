package program

import "slices"

// remoteSections are sections of the user's configuration about access to other machines. A [Git] reaches none,
// and they may contain keys.
var remoteSections = []string{"alias", "credential", "http", "imap", "sendemail", "url"}

// dataSettings lists, by section, the settings that always pass: they define the meaning or display of
// content, and name no program. All other settings are rejected, whatever git may do with them in
// future.
var dataSettings = map[string][]string{
	"core": {
		"abbrev", "attributesfile", "autocrlf", "bigfilethreshold", "checkroundtripencoding", "checkstat", "commentchar",
		"compression", "deltabasecachelimit",
		"eol", "excludesfile", "filemode", "fsync", "fsyncmethod", "ignorecase", "ignorestat", "logallrefupdates",
		"longpaths", "loosecompression", "multipackindex",
		"packedgitlimit", "packedgitwindowsize", "precomposeunicode", "preloadindex", "protecthfs", "protectntfs",
		"quotepath", "safecrlf", "sharedrepository",
		"sparsecheckout", "sparsecheckoutcone", "splitindex", "symlinks", "trustctime", "untrackedcache", "warnambiguousrefs",
		"whitespace",
	},
	"author":    {"name", "email"},
	"blame":     {"ignorerevsfile", "markunblamablelines", "markignoredlines"},
	"color":     {"*"},
	"commit":    {"cleanup"},
	"committer": {"name", "email"},
	"diff": {
		"algorithm", "context", "indentheuristic", "interhunkcontext", "mnemonicprefix", "noprefix", "orderfile", "relative",
		"renamelimit", "renames",
		"suppressblankempty", "wserrorhighlight",
	},
	"feature": {"*"},
	"i18n":    {"*"},
	"index":   {"*"},
	"log":     {"date", "decorate", "excludedecoration", "follow", "mailmap"},
	"mailmap": {"file", "blob"},
	"pack":    {"*"},
	"status":  {"*"},
	"user":    {"name", "email", "useconfigonly"},

	// The same for named sections.
	"branch.": {"merge", "remote", "pushremote", "rebase"},
	"lfs":     {"repositoryformatversion"},
	"remote.": {"fetch", "promisor", "partialclonefilter"},
}

// isHarmless reports whether a setting passes regardless of who set it.
func isHarmless(section, name, last string) bool {
	if name != "" && section != "color" {
		section += "."
	}
	return slices.Contains(dataSettings[section], last) || slices.Contains(dataSettings[section], "*")
}
