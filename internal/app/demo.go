package app

import (
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"coder/internal/provider"
	"coder/internal/provider/scripted"
)

//go:embed demo
var demoFiles embed.FS

const demoPrompt = "the test fails; find out why and fix it"

// runDemo lets a scripted model repair a small project in a temporary folder.
// Everything but the model is the real program.
func runDemo(ctx context.Context, env Env, fl *flags) error {
	if _, err := exec.LookPath("go"); err != nil {
		return &exitError{code: ExitError, text: "the demo repairs a Go project and runs its test; install Go first"}
	}
	dir, err := unpackDemo()
	if err != nil {
		return fmt.Errorf("unpack the demo: %w", err)
	}
	fmt.Fprintf(env.Stderr, "The model in this demo is a script: its replies were written in advance. Everything else is the real program.\n"+
		"Project: %s (its test fails)\n$ coder -p --auto-approve %q\n\n", dir, demoPrompt)
	demo := *fl
	demo.demo, demo.print, demo.autoApprove, demo.dir, demo.args = true, true, true, dir, []string{demoPrompt}
	env.Piped = func() bool { return false }
	err = runHeadless(ctx, env, &demo)
	fmt.Fprintf(env.Stderr, "\nWhat happened is on record: %s\nThe conversation: %s\nConnect a model of your own: see \"Connecting a provider\" in the README.\n",
		filepath.Join(dir, ".coder", "log"), filepath.Join(dir, ".coder", "sessions"))
	return err
}

func demoModel() (provider.Provider, error) {
	text, err := demoFiles.ReadFile("demo/script.txt")
	if err != nil {
		return nil, err
	}
	s, err := scripted.Parse(string(text))
	if err != nil {
		return nil, err
	}
	return scripted.New(s, scripted.Options{}), nil
}

// unpackDemo writes the demo's project into a new temporary folder.
func unpackDemo() (string, error) {
	dir, err := os.MkdirTemp("", "coder-demo-")
	if err != nil {
		return "", err
	}
	files := map[string]string{"go.mod": "module sum\n\ngo 1.21\n"}
	for _, name := range []string{"sum.go", "sum_test.go"} {
		text, err := demoFiles.ReadFile("demo/" + name + ".txt")
		if err != nil {
			return "", err
		}
		files[name] = string(text)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.TrimLeft(text, "\n")), 0o644); err != nil {
			return "", err
		}
	}
	return dir, nil
}
