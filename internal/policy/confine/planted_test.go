package confine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"coder/internal/policy/confine"
	"coder/internal/tool/bash"
)

// TestWhatACommandLeavesIsNamedHoweverItRuns: also where nothing confines it, and
// where it was approved to run outside the sandbox. A line that only reads is not
// looked at.
func TestWhatACommandLeavesIsNamedHoweverItRuns(t *testing.T) {
	for name, run := range map[string]func(*confine.Confiner, string) (bash.Confinement, error){
		"command": func(c *confine.Confiner, line string) (bash.Confinement, error) {
			return c.Command(t.Context(), read(line))
		},
		"unconfined": func(c *confine.Confiner, line string) (bash.Confinement, error) {
			return c.Supervised(t.Context(), read(line)), nil
		},
	} {
		for _, demand := range []string{confine.Auto, confine.Off} {
			o, warned := helpless(t, demand)
			sub := filepath.Join(o.Root, "sub")
			o.Repositories = func(context.Context) []string { return []string{sub} }
			c := confine.New(o)
			if reading, err := run(c, "ls"); err != nil || reading.CheckAfter != nil {
				t.Errorf("%s, %s: a line that reads: %v, %v", name, demand, reading.CheckAfter != nil, err)
			}
			got, err := run(c, "make")
			if err != nil || got.CheckAfter == nil {
				t.Fatalf("%s, %s: nothing looks afterwards, %v", name, demand, err)
			}
			hook := filepath.Join(sub, ".git/hooks/pre-push")
			if err := errors.Join(os.MkdirAll(filepath.Dir(hook), 0o755), os.WriteFile(hook, nil, 0o755)); err != nil {
				t.Fatal(err)
			}
			said := got.CheckAfter(t.Context())
			if all := strings.Join(*warned, "\n"); !strings.Contains(said, hook) || !strings.Contains(all, hook) {
				t.Errorf("%s, %s: said %q, warned %q", name, demand, said, all)
			}
		}
	}
}
