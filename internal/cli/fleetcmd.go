package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"coder/internal/app"
	"coder/internal/core/task"
	"coder/internal/core/uip"
	"coder/internal/host/program"
)

// fleetBinary is the program that runs many agents. It is separate, so that this one stays small.
const fleetBinary = "coder-fleet"

// fleetVerbs lists the fleet's commands.
var fleetVerbs = []string{"up", "worker", "submit", "ps", "workers", "logs", "watch", "answer", "cancel", "result",
	"verify", "restore", "prune", "drain", "enroll", "metrics", "status", "help"}

// isFleet distinguishes a fleet command from a prompt that begins with the word. A single word after it
// is always a command, even if wrong: a typo must not go to a model.
func isFleet(args []string) bool {
	if len(args) == 0 || args[0] != "fleet" {
		return false
	}
	return len(args) <= 2 || slices.Contains(fleetVerbs, args[1])
}

// findFleet finds the fleet's program beside this one or in PATH.
func (inv *invocation) findFleet() (string, error) {
	path := filepath.Join(filepath.Dir(inv.Exe), fleetBinary)
	if info, err := os.Stat(path); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
		return path, nil
	}
	path, err := inv.fleetLauncher().Find(fleetBinary)
	if refused := (*program.RefusalError)(nil); errors.As(err, &refused) {
		return "", &exitError{code: ExitInput, err: refused}
	}
	if err != nil {
		return "", &exitError{code: ExitInput,
			text: "coder-fleet not found: put it beside coder, or on the PATH (make fleet builds it)"}
	}
	return path, nil
}

// fleetLauncher returns the launcher of the fleet's program for this folder.
func (inv *invocation) fleetLauncher() program.Launcher {
	return program.NewOutside(inv.Environ, cmp.Or(inv.settings.Root, inv.Dir, string(filepath.Separator)))
}

// runFleet replaces this process with the fleet's program.
func (inv *invocation) runFleet(context.Context) error { return inv.execFleet(inv.Args[1:]) }

func (inv *invocation) execFleet(args []string) error {
	path, err := inv.findFleet()
	if err != nil {
		return err
	}
	err = program.Exec(path, append([]string{fleetBinary}, args...), inv.Environ)
	return errors.Join(errors.New("coder-fleet could not be started"), err)
}

// fleetTimeout is the timeout for the fleet's answer.
const fleetTimeout = 5 * time.Second

// fleetTasks returns the tasks of the user's fleet, if there is one, as if they were local. It reports
// errors as warnings. more is passed to ps.
func (inv *invocation) fleetTasks(ctx context.Context, a *app.Workspace, more ...string) (rows []taskRow) {
	if _, err := os.Stat(filepath.Join(a.Home, "fleet", "fleet.json")); err != nil || a.Home == "" {
		return nil
	}
	path, err := inv.findFleet()
	if err != nil {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, fleetTimeout)
	defer stop()
	cmd := inv.fleetLauncher().Command(ctx, path, append([]string{"ps", "--json"}, more...)...)
	cmd.WaitDelay = time.Second
	text, err := cmd.Output()
	var tasks []struct {
		ID   string `json:"id"`
		Spec struct {
			Prompt string `json:"prompt"`
		} `json:"spec"`
		Status   string       `json:"status"`
		Question *uip.Request `json:"question"`
		Created  time.Time    `json:"created"`
	}
	if err == nil {
		err = json.Unmarshal(text, &tasks)
	}
	if err != nil {
		inv.warn("the fleet does not list its tasks; coder fleet ps shows why")
		return nil
	}
	statuses := map[string]task.Status{"queued": task.StatusOpen, "running": task.StatusInProgress,
		"waiting": task.StatusAwaitingUser, "done": task.StatusDone, "canceled": task.StatusCanceled}
	for _, t := range slices.Backward(tasks) {
		row := taskRow{Session: t.ID, ID: t.ID, Title: t.Spec.Prompt,
			Status: string(cmp.Or(statuses[t.Status], task.StatusFailed)), Created: t.Created, OpenQuestions: []uip.Request{},
			Running: t.Status == "running"}
		if t.Question != nil {
			row.OpenQuestions = append(row.OpenQuestions, *t.Question)
		}
		rows = append(rows, row)
	}
	return rows
}

// respondToFleet sends the fleet the answer to a question of one of its tasks, in any folder.
func (inv *invocation) respondToFleet(ctx context.Context, a *app.Workspace, id string) error {
	for _, row := range inv.fleetTasks(ctx, a) {
		if !slices.ContainsFunc(row.OpenQuestions, func(q uip.Request) bool { return q.ID == id || row.ID == id }) {
			continue
		}
		args := []string{"answer", id}
		for flag, value := range map[string]string{"--option": inv.flags.option, "--input": inv.flags.input,
			"--comment": inv.flags.comment} {
			if value != "" {
				args = append(args, flag, value)
			}
		}
		for _, part := range inv.flags.answers {
			args = append(args, "--answer", part)
		}
		return inv.execFleet(args)
	}
	return nil
}
