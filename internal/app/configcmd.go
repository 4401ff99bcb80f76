package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"text/tabwriter"

	"coder/internal/config"
)

// runConfig shows the configuration: the values in force and where each came
// from, the files that are read, or the schema of those files.
func runConfig(env Env, fl *flags) error {
	what := "show"
	if len(fl.args) > 0 {
		what = fl.args[0]
	}
	if len(fl.args) > 1 {
		return usagef("coder config takes one word: show, path or schema")
	}
	switch what {
	case "show":
		return showConfig(env, fl)
	case "path":
		return showConfigPaths(env, fl)
	case "schema":
		var b bytes.Buffer
		if err := json.Indent(&b, config.Schema(), "", "  "); err != nil {
			return fmt.Errorf("write the schema: %w", err)
		}
		_, err := fmt.Fprintln(env.Stdout, b.String())
		return err
	}
	return usagef("unknown: coder config %s; it takes show, path or schema", what)
}

func showConfig(env Env, fl *flags) error {
	h, err := locate(env, fl)
	if err != nil {
		return err
	}
	_, report, err := config.Load(h.loadOptions())
	if err != nil {
		return &exitError{code: ExitConfig, err: err}
	}
	words := wordsFor(env, fl)
	w := tabwriter.NewWriter(env.Stdout, 0, 4, 2, ' ', 0)
	for _, r := range report.Rows() {
		fmt.Fprintf(w, "%s\t%s\t%s\n", r.Key, r.Value, words.Said(r.Origin.String()))
	}
	for _, warning := range report.Warnings {
		fmt.Fprintln(env.Stderr, "coder: "+words.Said(warning.String()))
	}
	return w.Flush()
}

func showConfigPaths(env Env, fl *flags) error {
	h, err := locate(env, fl)
	if err != nil {
		return err
	}
	words := wordsFor(env, fl)
	for _, path := range h.loadOptions().Files() {
		line := words.T("%s (not there)", path)
		if _, err := os.Stat(path); err == nil {
			line = words.T("%s (read)", path)
		}
		fmt.Fprintln(env.Stdout, line)
	}
	return nil
}

// locate is a house that has not read its configuration yet.
func locate(env Env, fl *flags) (*house, error) {
	root, err := findRoot(env, fl)
	return &house{env: env, flags: fl, root: root, home: homeDir(env)}, err
}
