// Package verify answers the three questions about a check after an edit, without doing
// anything itself: is one needed ([CheckReason]), which command is it ([ChooseCheck]), and what
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
	NotRunText = "未执行自动验证"
	FixRequest = "请修复并再次验证"
	BestEffort = "best-effort"
)

// Conditions is the basis of the decision.
type Conditions struct {
	Policy      mode.Verify
	EditedFiles []string // paths that this turn wrote, relative to the workspace
	Requested   bool     // the user asked for a check, see [IsRequested]
	Enabled     bool     // workflow.auto_verify_after_edit
	BashAllowed bool     // bash is available and not denied
	Attempts    int      // repairs requested so far in this turn
	MaxAttempts int      // workflow.max_verify_attempts
}

// Reason is a reason to check or not to check.
type Reason string

// The reasons.
const (
	ReasonEdits         Reason = "files were edited"
	ReasonNothingEdited Reason = "nothing was edited"
	ReasonOnlyDocuments Reason = "only documents were edited"
	ReasonSwitchedOff   Reason = "verification is switched off"
	ReasonModeNever     Reason = "this mode does not verify"
	ReasonNotRequested  Reason = "nobody asked for verification"
	ReasonNoBash        Reason = "bash is not available"
	ReasonExhausted     Reason = "all repair attempts are used up"
)

// IsWorthShowing reports whether to tell the user about w: they expected a check and there is none.
func (w Reason) IsWorthShowing() bool { return w == ReasonNoBash || w == ReasonExhausted }

// CheckReason says whether the turn in f needs a check: it does if the result is Edits.
func CheckReason(f Conditions) Reason {
	switch {
	case len(f.EditedFiles) == 0:
		return ReasonNothingEdited
	case !slices.ContainsFunc(f.EditedFiles, IsCode):
		return ReasonOnlyDocuments
	case !f.Enabled:
		return ReasonSwitchedOff
	case f.Policy == mode.VerifyNever:
		return ReasonModeNever
	case f.Policy == mode.VerifyOnRequest && !f.Requested:
		return ReasonNotRequested
	case !f.BashAllowed:
		return ReasonNoBash
	case f.Attempts > f.MaxAttempts:
		return ReasonExhausted
	}
	return ReasonEdits
}

// CanRepair reports whether a failed check may still request a repair.
// At most max repairs are requested, so at most max+1 checks run.
func CanRepair(attempts, max int) bool { return attempts < max }

// documentExtensions and documentNames list the files that no test looks at. Some text files are code.
var (
	documentExtensions = []string{".md", ".markdown", ".mdown", ".rst", ".adoc", ".asciidoc", ".org", ".textile", ".txt",
		".text", ".rtf", ".pdf", ".docx", ".odt", ".log", ".tex", ".bib"}
	documentNames = []string{"readme", "license", "licence", "copying", "notice", "authors", "contributors",
		"maintainers", "codeowners", "changelog", "changes", "news", "history", "todo", "notes", "thanks", ".gitignore",
		".gitattributes", ".mailmap"}
)

// IsCode reports whether a check may look at a file.
func IsCode(file string) bool {
	file = path.Clean(strings.ToLower(strings.ReplaceAll(file, `\`, "/")))
	return !strings.HasPrefix(file, "docs/") &&
		(!slices.Contains(documentExtensions, path.Ext(file)) || isCodeText(file)) &&
		!slices.Contains(documentNames, path.Base(file))
}

// isCodeText reports whether tests may look at a text file.
func isCodeText(file string) bool {
	name := path.Base(file)
	return strings.HasPrefix(name, "requirements") || strings.HasPrefix(name, "constraints") || name == "cmakelists.txt" ||
		strings.Contains(file, "test")
}
