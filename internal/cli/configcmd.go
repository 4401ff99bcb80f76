package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"text/tabwriter"

	"coder/internal/config"
)

// runConfig shows the configuration: the values in force and where each came
// from, the files that are read, or the schema of those files. What is wrong
// with the settings only matters where they are shown.
func (inv *invocation) runConfig() error {
	what := "show"
	if len(inv.flags.args) > 0 {
		what = inv.flags.args[0]
	}
	if len(inv.flags.args) > 1 {
		return usagef("coder config takes one word: show, path or schema")
	}
	switch what {
	case "show":
		if inv.loadErr != nil {
			return inv.loadErr
		}
		w := tabwriter.NewWriter(inv.Stdout, 0, 4, 2, ' ', 0)
		for _, r := range inv.settings.Report.Rows() {
			fmt.Fprintf(w, "%s\t%s\t%s\n", r.Key, r.Value, inv.words.Said(r.Origin.String()))
		}
		for _, warning := range inv.settings.Report.Warnings {
			inv.warn(warning.String())
		}
		return w.Flush()
	case "path":
		if inv.settings.Root == "" {
			return inv.loadErr
		}
		for _, path := range inv.settings.Files {
			line := inv.words.T("%s (not there)", path)
			if _, err := os.Stat(path); err == nil {
				line = inv.words.T("%s (read)", path)
			}
			fmt.Fprintln(inv.Stdout, line)
		}
		return nil
	case "schema":
		var b bytes.Buffer
		if err := json.Indent(&b, config.Schema(), "", "  "); err != nil {
			return fmt.Errorf("write the schema: %w", err)
		}
		_, err := fmt.Fprintln(inv.Stdout, b.String())
		return err
	}
	return usagef("unknown: coder config %s; it takes show, path or schema", what)
}
