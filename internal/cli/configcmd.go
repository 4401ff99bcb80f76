package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"coder/internal/app"
	"coder/internal/config"
	"coder/internal/core/display"
	"coder/internal/core/message"
	"coder/internal/policy/trust"
	"coder/internal/ui/lineedit"
	"coder/internal/ui/term/ink"
)

// runConfig shows the configuration: the effective values and their sources, the files, or the schema of
// those files. Errors in the settings matter only where they are shown.
func (inv *invocation) runConfig(context.Context) error {
	what, rest := "show", []string(nil)
	if len(inv.flags.args) > 0 {
		what, rest = inv.flags.args[0], inv.flags.args[1:]
	}
	switch what {
	case "list":
		return inv.listSettings(rest)
	case "get":
		return inv.getSetting(rest)
	case "set", "unset":
		return inv.changeSetting(what, rest)
	}
	if what == "schema" && len(rest) == 1 && rest[0] == "keys" {
		return inv.printSchema(config.KeysSchema(lineedit.ActionNames()))
	}
	if len(rest) > 0 {
		return usageErrorf("coder config %s takes no arguments", what)
	}
	switch what {
	case "show":
		if inv.loadErr != nil {
			return inv.loadErr
		}
		for _, warning := range inv.settings.Report.Warnings {
			inv.warn(warning.String())
		}
		rows, key, value := inv.settings.Report.Rows(), 0, 0
		if inv.columns > 0 {
			var t display.Table
			for _, r := range rows {
				t.Rows = append(t.Rows, display.DataCells(r.Key, r.Value, inv.printer.TranslateText(r.DisplayOrigin())))
			}
			return inv.printBlocks(t)
		}
		const wide = 32 // a longer value does not shift the others
		for _, r := range rows {
			if key = max(key, ink.Width(r.Key)); ink.Width(r.Value) <= wide {
				value = max(value, ink.Width(r.Value))
			}
		}
		pad := func(s string, width int) string { return s + strings.Repeat(" ", max(width-ink.Width(s), 0)+2) }
		lines := make([]string, len(rows))
		for i, r := range rows {
			lines[i] = pad(r.Key, key) + pad(r.Value, value) + inv.printer.TranslateText(r.DisplayOrigin())
		}
		return inv.print(lines...)
	case "path":
		if inv.settings.Root == "" {
			return inv.loadErr
		}
		for _, path := range inv.settings.Files {
			line := inv.printer.T("%s (does not exist)", path)
			if _, err := os.Stat(path); err == nil {
				line = inv.printer.T("%s (read)", path)
			}
			fmt.Fprintln(inv.Stdout, line)
		}
		return nil
	case "schema":
		return inv.printSchema(config.Schema())
	}
	return usageErrorf("unknown command: config %s; use one of %s", what, strings.Join(configVerbs, ", "))
}

func (inv *invocation) printSchema(schema json.RawMessage) error {
	var b bytes.Buffer
	if err := json.Indent(&b, schema, "", "  "); err != nil {
		return message.Errorf("write the schema: %w", err)
	}
	return inv.print(b.String())
}

// runTrust trusts a workspace with its current settings, and shows what they do, or revokes that.
// Invalid settings are not trusted.
func (inv *invocation) runTrust(context.Context) error {
	fl, root, words := inv.flags, inv.settings.Root, inv.printer
	if root == "" {
		return inv.loadErr
	}
	act, said := inv.settings.Trust.Revoke, words.T("no longer trusted: %s", root)
	var e app.TrustPreview
	if !fl.revoke {
		var err error
		if e, err = app.PreviewTrust(inv.Env.Env, fl.Options); err != nil {
			inv.warn("nothing was trusted")
			return err
		}
		act, said = func(string) error { return e.Trust() }, words.T("trusted: %s", root)
	}
	if err := act(root); err != nil {
		return inputErrorf("%v", err)
	}
	if fl.json {
		var row pluginRow
		row.addContents(app.PluginContents{Hooks: e.Hooks, Servers: e.Servers})
		return inv.printJSON(trustReport{trust.ExistingFiles(root), row.Hooks, row.Servers, root, e.Settings, !fl.revoke})
	}
	lines := []string{said}
	if !fl.revoke {
		for _, name := range trust.ExistingFiles(root) {
			lines = append(lines, words.T("  %s, as it is now; coder asks again if it changes", name))
		}
		lines = append(lines, inv.cellLines(e.Rows())...)
	}
	return inv.print(lines...)
}

// trustReport is what a folder's trust covers, in JSON output.
type trustReport struct {
	Files    []string     `json:"files"`
	Hooks    []pluginRun  `json:"hooks"`
	Servers  []pluginRun  `json:"mcpServers"`
	Root     string       `json:"root"`
	Settings []config.Row `json:"settings"`
	Trusted  bool         `json:"trusted"`
}
