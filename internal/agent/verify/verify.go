// Package verify answers the three questions about a check after an edit, without doing
// anything itself: is one needed ([Needed]), which command is it ([Choose]), and what
// does its outcome mean ([Judge]). It only chooses commands from a fixed whitelist.
package verify

import (
	"path"
	"slices"
	"strings"

	"coder/internal/policy/mode"
)

// Fixed words that users and other programs look for.
const (
	NotRun     = "未执行自动验证"
	FixAgain   = "请修复并再次验证"
	BestEffort = "best-effort"
)

// Facts is the basis of the decision.
type Facts struct {
	When        mode.Verify
	Edited      []string // paths that this turn wrote, relative to the workspace
	Asked       bool     // the user asked for a check, see [AskedFor]
	Enabled     bool     // workflow.auto_verify_after_edit
	BashAllowed bool     // bash is available and not denied
	Attempts    int      // repairs requested so far in this turn
	MaxAttempts int      // workflow.max_verify_attempts
}

// Why is a reason to check or not to check.
type Why string

// The reasons.
const (
	Edits         Why = "files were edited"
	NothingEdited Why = "nothing was edited"
	OnlyDocuments Why = "only documents were edited"
	SwitchedOff   Why = "verification is switched off"
	ModeNever     Why = "this mode does not verify"
	NotAsked      Why = "nobody asked for verification"
	NoBash        Why = "bash is not available"
	Exhausted     Why = "all repair attempts are used up"
)

// Worth reports whether to tell the user about w: they expected a check and there is none.
func (w Why) Worth() bool { return w == NoBash || w == Exhausted }

// Needed says whether the turn in f needs a check: it does if the result is Edits.
func Needed(f Facts) Why {
	switch {
	case len(f.Edited) == 0:
		return NothingEdited
	case !slices.ContainsFunc(f.Edited, IsCode):
		return OnlyDocuments
	case !f.Enabled:
		return SwitchedOff
	case f.When == mode.Never:
		return ModeNever
	case f.When == mode.OnRequest && !f.Asked:
		return NotAsked
	case !f.BashAllowed:
		return NoBash
	case f.Attempts > f.MaxAttempts:
		return Exhausted
	}
	return Edits
}

// MayRepair reports whether a failed check may still request a repair.
// At most max repairs are requested, so at most max+1 checks run.
func MayRepair(attempts, max int) bool { return attempts < max }

// documentEndings and documentNames list the files that no test looks at. Some text files are code.
var (
	documentEndings = []string{".md", ".markdown", ".mdown", ".rst", ".adoc", ".asciidoc", ".org", ".textile", ".txt", ".text", ".rtf", ".pdf", ".docx", ".odt", ".log", ".tex", ".bib"}
	documentNames   = []string{"readme", "license", "licence", "copying", "notice", "authors", "contributors", "maintainers", "codeowners", "changelog", "changes", "news", "history", "todo", "notes", "thanks", ".gitignore", ".gitattributes", ".mailmap"}
)

// IsCode reports whether a check may look at a file.
func IsCode(file string) bool {
	file = path.Clean(strings.ToLower(strings.ReplaceAll(file, `\`, "/")))
	return !strings.HasPrefix(file, "docs/") &&
		(!slices.Contains(documentEndings, path.Ext(file)) || codeText(file)) &&
		!slices.Contains(documentNames, path.Base(file))
}

// codeText reports whether tests may look at a text file.
func codeText(file string) bool {
	name := path.Base(file)
	return strings.HasPrefix(name, "requirements") || strings.HasPrefix(name, "constraints") || name == "cmakelists.txt" || strings.Contains(file, "test")
}
