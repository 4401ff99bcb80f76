package program

import "slices"

// outward are sections of your own configuration that say how git reaches other
// machines. A [Git] reaches none, and they may hold keys.
var outward = []string{"alias", "credential", "http", "imap", "sendemail", "url"}

// data are the settings that pass whoever made them, by section: they say what
// content means and how it is shown, and lead to no program. A setting that is
// not here does not pass, whatever git makes of it one day.
var data = map[string][]string{
	"core": {
		"abbrev", "attributesfile", "autocrlf", "bigfilethreshold", "checkroundtripencoding", "checkstat", "commentchar", "compression", "deltabasecachelimit",
		"eol", "excludesfile", "filemode", "fsync", "fsyncmethod", "ignorecase", "ignorestat", "logallrefupdates", "longpaths", "loosecompression", "multipackindex",
		"packedgitlimit", "packedgitwindowsize", "precomposeunicode", "preloadindex", "protecthfs", "protectntfs", "quotepath", "safecrlf", "sharedrepository",
		"sparsecheckout", "sparsecheckoutcone", "splitindex", "symlinks", "trustctime", "untrackedcache", "warnambiguousrefs", "whitespace",
	},
	"author":    {"name", "email"},
	"blame":     {"ignorerevsfile", "markunblamablelines", "markignoredlines"},
	"color":     {"*"},
	"commit":    {"cleanup"},
	"committer": {"name", "email"},
	"diff": {
		"algorithm", "context", "indentheuristic", "interhunkcontext", "mnemonicprefix", "noprefix", "orderfile", "relative", "renamelimit", "renames",
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

	// The same of what has a name.
	"branch.": {"merge", "remote", "pushremote", "rebase"},
	"lfs":     {"repositoryformatversion"},
	"remote.": {"fetch", "promisor", "partialclonefilter"},
}

// isHarmless reports whether a setting passes whoever made it.
func isHarmless(section, name, last string) bool {
	if name != "" && section != "color" {
		section += "."
	}
	return slices.Contains(data[section], last) || slices.Contains(data[section], "*")
}
