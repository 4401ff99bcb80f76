package app

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"coder/internal/config"
	"coder/internal/core/jsonx"
	"coder/internal/policy/trust"
)

// trust is where the person's trust in workspaces is written down.
func (h *house) trust() trust.Book {
	book := trust.Book{Now: h.env.Now}
	if h.home != "" {
		book.Path = filepath.Join(h.home, "trust.json")
	}
	return book
}

// needsTrust reports whether a setting of the project under prefix was passed
// over because the project is not trusted.
func (h *house) needsTrust(prefix string) bool {
	return h.trusted != trust.Trusted && slices.ContainsFunc(h.report.Warnings, func(w config.Warning) bool { return strings.HasPrefix(w.Key, prefix) })
}

func (h *house) untrusted(why string) error {
	return &exitError{code: ExitUntrusted, text: fmt.Sprintf("%s is %s, and %s; look at it, then run: coder trust %[1]s", h.root, h.trusted, why)}
}

// runTrust trusts a workspace as it is now, or ends that.
func runTrust(env Env, fl *flags) error {
	if len(fl.args) > 1 {
		return usagef("coder trust takes one folder")
	}
	if len(fl.args) == 1 {
		fl.dir = fl.args[0]
	}
	h, err := locate(env, fl)
	if err != nil {
		return err
	}
	words := wordsFor(env, fl)
	act, said := h.trust().Give, words.T("trusted: %s", h.root)
	if fl.revoke {
		act, said = h.trust().Take, words.T("no longer trusted: %s", h.root)
	}
	if err := act(h.root); err != nil {
		return inputf("%v", err)
	}
	if fl.json {
		_, err := fmt.Fprintf(env.Stdout, "%s\n", jsonx.Must(map[string]any{"root": h.root, "trusted": !fl.revoke, "files": trust.Settings(h.root)}))
		return err
	}
	if _, err := fmt.Fprintln(env.Stdout, said); err != nil || fl.revoke {
		return err
	}
	for _, name := range trust.Settings(h.root) {
		fmt.Fprintln(env.Stdout, words.T("  %s, as it is now; when it changes you are asked again", name))
	}
	return nil
}
