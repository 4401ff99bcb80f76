//go:build unix

package bash_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"coder/internal/core/secret"
	"coder/internal/tool/bash"
)

// Keys stand in no saved output, wherever they are in it and however they came:
// with a pause in the middle, with colours in between, where a result is cut.
func TestKeysAreNotSaved(t *testing.T) {
	const key = "sk-0123456789-9876543210"
	filler := strings.Repeat("x", 14_990) + "\n"
	for name, line := range map[string]string{
		"in the middle":       "seq 1 9000; echo a " + key + " b; seq 1 9000",
		"in two writes":       "seq 1 20000; printf sk-01234; sleep 0.05; echo 56789-9876543210",
		"at the end":          "seq 1 20000; printf " + key,
		"with colours":        `seq 1 20000; printf 'sk-0123\033[1m456789-98\033[0m76543210\n'`,
		"to stderr":           "seq 1 20000; printf sk-01234 >&2; sleep 0.05; printf 56789-9876543210 >&2",
		"where it is cut":     "printf '" + filler + "'; echo " + key + "; seq 1 20000",
		"in a JSON":           `seq 1 20000; echo '{"key":"` + key + `"}'`,
		"in a very long line": "yes | tr -d '\\n' | head -c 400000; printf " + key + "; yes | tr -d '\\n' | head -c 400000",
	} {
		sh, dir := open(t, bash.Options{RunsDir: "runs", Concealer: secret.NewConcealer([]string{key})})
		var live bytes.Buffer
		o, _ := run(t, sh, command(line), &live)
		log, err := os.ReadFile(filepath.Join(dir, o.LogPath))
		if err != nil {
			t.Fatal(name, err)
		}
		_, printed, _ := strings.Cut(string(log), "\n\n") // after the command itself
		for what, text := range map[string]string{"log": printed, "live": live.String(), "stdout": o.Stdout, "stderr": o.Stderr} {
			if strings.Contains(text, "sk-0123") || strings.Contains(text, "9876543210") {
				t.Errorf("%s: the %s shows it", name, what)
			}
		}
		if !strings.Contains(printed, secret.KeyMask) {
			t.Errorf("%s: the log does not say that a key was there", name)
		}
	}
}

func TestOutputWithoutKeysIsSavedAsItCame(t *testing.T) {
	saved := func(c *secret.Concealer) []byte {
		sh, dir := open(t, bash.Options{RunsDir: "runs", Concealer: c})
		o, _ := run(t, sh, command("seq 1 20000; printf 'sk-012 \\351 sk-01234567'"), &bytes.Buffer{})
		log, err := os.ReadFile(filepath.Join(dir, o.LogPath))
		if err != nil {
			t.Fatal(err)
		}
		return log
	}
	if !bytes.Equal(saved(nil), saved(secret.NewConcealer([]string{"sk-0123456789-9876543210"}))) {
		t.Error("it is not the same")
	}
}

func TestKeysAreNotSavedFromTheBackground(t *testing.T) {
	const key = "sk-0123456789-9876543210"
	set, jobs, dir := openAll(t, bash.Options{RunsDir: "runs", Concealer: secret.NewConcealer([]string{key})})
	s, err := use(t, set, "bash", obj{"command": "printf sk-01234; sleep 0.05; echo 56789-9876543210; echo done", "background": true})
	if err != nil {
		t.Fatal(err)
	}
	read, err := use(t, set, "job_read", obj{"id": s.ID, "wait": 60_000})
	if err != nil {
		t.Fatal(err)
	}
	jobs.Close()
	log, err := os.ReadFile(filepath.Join(dir, s.LogPath))
	if err != nil || strings.Contains(string(log), key) || !strings.Contains(string(log), secret.KeyMask+"\ndone\n") {
		t.Errorf("log %q, %v", log, err)
	}
	if strings.Contains(s.Output+read.Output, "sk-0123") {
		t.Errorf("read %q", s.Output+read.Output)
	}
}
