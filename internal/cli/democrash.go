package cli

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"coder/internal/app"
	"coder/internal/core/event"
	"coder/internal/core/message"
	"coder/internal/host/program"
	"coder/internal/host/repofile"
	"coder/internal/record/audit"
	"coder/internal/ui/i18n"
	"coder/internal/ui/term/ink"
)

// crashDemo shows a session whose process is killed during a command, and a second process that
// continues it. Both run this program normally.
type crashDemo struct {
	*invocation
	dir string // the project's folder
}

const (
	crashSession      = "crash"
	crashFile         = "steps.txt"
	crashStartTimeout = 30 * time.Second // timeout for the command to start
	crashPause        = 20 * time.Millisecond
)

// runCrashDemo runs the demo.
func (inv *invocation) runCrashDemo(ctx context.Context) error {
	top, err := newDemoDir()
	if err != nil {
		return message.Errorf("unpack the demo: %w", err)
	}
	d := crashDemo{inv, filepath.Join(top, "project")}
	if err := d.unpack(top); err != nil {
		return message.Errorf("unpack the demo: %w", err)
	}
	t := inv.printer.T
	err = d.printWrapped(
		t("The model in this demo is a script: its replies were written in advance. Everything else is the real program."),
		t("The project: %s", d.dir), "", d.commandLine("-p", "--session-id", crashSession))
	if err != nil {
		return err
	}
	pid, err := d.runAndKill(ctx)
	if err != nil {
		return err
	}
	before := d.writtenLines()
	err = d.printWrapped("", t("== Killed: kill -9 %d, while the second of three commands ran", pid),
		t("%s contains: %s", crashFile, strings.Join(before, ", ")),
		"", t("== Continued by a new process"), d.commandLine("-p", "-r", crashSession))
	if err != nil {
		return err
	}
	if err := d.newProcess(ctx, "resumed", "-r", crashSession).Run(); err != nil {
		return message.Errorf("continue the session: %w", err)
	}
	return d.showResult(ctx)
}

// unpack writes the project and the scripts of both processes.
func (d crashDemo) unpack(top string) error {
	for _, dir := range []string{d.dir, filepath.Join(top, "home")} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
	}
	for _, name := range []string{"crash", "resumed"} {
		file := "demo/" + name + ".txt"
		if d.printer.Lang() == i18n.Chinese {
			file = "demo/" + name + "." + i18n.Chinese + ".txt"
		}
		text, err := demoFiles.ReadFile(file)
		if err == nil {
			err = os.WriteFile(d.scriptPath(name), text, 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (d crashDemo) scriptPath(name string) string {
	return filepath.Join(filepath.Dir(d.dir), name+".txt")
}

// commandLine returns the command line that does the same by hand.
func (d crashDemo) commandLine(args ...string) string {
	return "$ coder " + strings.Join(append(args, "…"), " ")
}

// newProcess returns the command of a process that works in the session, with indented output.
func (d crashDemo) newProcess(ctx context.Context, script string, args ...string) *program.Cmd {
	args = append([]string{"-p", "--cwd", d.dir, "--auto-approve", "--script", d.scriptPath(script), "--lang",
		d.printer.Lang()}, args...)
	cmd := program.TrustedCommand(ctx, d.Exe, args...)
	cmd.Dir = d.dir
	cmd.Env = append(slices.Clone(d.Environ), "CODER_HOME="+filepath.Join(filepath.Dir(d.dir), "home"))
	cmd.Stdout, cmd.Stderr = &indentWriter{w: d.Stdout}, &indentWriter{w: d.Stdout}
	cmd.WaitDelay = time.Second
	return cmd
}

// runAndKill runs the first process until its second command has written its line, and then kills it.
func (d crashDemo) runAndKill(ctx context.Context) (pid int, err error) {
	cmd := d.newProcess(ctx, "crash", "--session-id", crashSession, d.printer.T("write one, two and three into steps.txt"))
	if err := cmd.Start(); err != nil {
		return 0, message.Errorf("start the first process: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	limit := time.After(crashStartTimeout)
	for {
		select {
		case err := <-ended:
			return 0, message.Errorf("the first process ended before it was killed: %w", cmp.Or(err, io.EOF))
		case <-limit:
			return 0, errors.Join(errors.New("the second command did not start in time"), cmd.Process.Kill(), <-ended)
		case <-time.After(crashPause):
		}
		if slices.Contains(d.writtenLines(), "two") {
			err := cmd.Process.Kill() // kill -9
			<-ended
			return cmd.Process.Pid, err
		}
	}
}

// writtenLines returns the lines that the commands have written.
func (d crashDemo) writtenLines() []string {
	text, _ := repofile.NewRoot(d.dir).Read(crashFile, maxDemoFile) // the file may not exist
	return strings.Fields(string(text))
}

// showResult counts the commands that ran and the records.
func (d crashDemo) showResult(ctx context.Context) error {
	there := *d.invocation
	there.loadSettings(&flags{Options: app.Options{Dir: d.dir, Overrides: app.Overrides{Lang: d.flags.Lang}},
		outputFormat: "text"})
	a, err := there.newApp(func(string) {})
	if err != nil {
		return err
	}
	calls, err := audit.PairCalls(a.Store().Logs.Read(ctx, crashSession, 0, event.LogAudit))
	if err != nil {
		return err
	}
	t, steps := d.printer.T, d.writtenLines()
	lines := []string{"", t("== Recorded")}
	for _, c := range calls {
		state := "done"
		switch {
		case c.IsOpen():
			state = "no end recorded"
		case c.Completed.OutcomeUnknown:
			state = "unknown outcome, not repeated"
		}
		lines = append(lines, "  "+c.Requested.Tool+" "+strings.Join(event.Targets(c.Requested.Effects), ", ")+" — "+t(state))
	}
	lines = append(lines, t("%s contains: %s", crashFile, strings.Join(steps, ", ")))
	if !slices.Equal(steps, []string{"one", "two", "three"}) {
		return errors.Join(d.printWrapped(lines...), errors.New("a command was lost or ran twice: this is a bug in coder"))
	}
	return d.printWrapped(append(lines, ink.FoldText(t("Nothing was lost, nothing ran twice."), d.columns),
		t("The folder is yours now; to remove it: rm -r %s", filepath.Dir(d.dir)))...)
}

// indentWriter separates a process's lines from the demo's own.
type indentWriter struct {
	w       io.Writer
	midLine bool // the last line is incomplete
}

func (i *indentWriter) Write(p []byte) (int, error) {
	var b strings.Builder
	for line := range strings.Lines(string(p)) {
		if !i.midLine {
			b.WriteString("  │ ")
		}
		b.WriteString(line)
		i.midLine = !strings.HasSuffix(line, "\n")
	}
	if _, err := io.WriteString(i.w, b.String()); err != nil {
		return 0, err
	}
	return len(p), nil
}
