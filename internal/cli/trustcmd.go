package cli

import (
	"fmt"

	"coder/internal/core/jsonx"
	"coder/internal/policy/trust"
)

// runTrust trusts a workspace as it is now, or ends that. What is wrong with its
// settings does not matter.
func (inv *invocation) runTrust() error {
	fl, root, words := inv.flags, inv.settings.Root, inv.words
	if len(fl.args) > 1 {
		return usagef("coder trust takes one folder")
	}
	if root == "" {
		return inv.loadErr
	}
	act, said := inv.settings.Trust.Give, words.T("trusted: %s", root)
	if fl.revoke {
		act, said = inv.settings.Trust.Take, words.T("no longer trusted: %s", root)
	}
	if err := act(root); err != nil {
		return inputf("%v", err)
	}
	if fl.json {
		_, err := fmt.Fprintf(inv.Stdout, "%s\n", jsonx.Must(map[string]any{"root": root, "trusted": !fl.revoke, "files": trust.Settings(root)}))
		return err
	}
	if _, err := fmt.Fprintln(inv.Stdout, said); err != nil || fl.revoke {
		return err
	}
	for _, name := range trust.Settings(root) {
		fmt.Fprintln(inv.Stdout, words.T("  %s, as it is now; when it changes you are asked again", name))
	}
	return nil
}
