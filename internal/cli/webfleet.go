package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"coder/internal/core/uip"
	"coder/internal/ui/browser"
)

// fleetBinary returns what the page about the user's fleet shows and does, through the fleet's own program.
func (w *webServer) fleetProgram() browser.FleetBackend {
	return browser.FleetBackend{
		Configured: func() bool {
			_, err := os.Stat(filepath.Join(w.app.Home, "fleet", "fleet.json"))
			return err == nil
		},
		State: func(ctx context.Context) (f browser.Fleet, err error) {
			text, err := w.runFleet(ctx, "status", "--json")
			if err == nil && json.Unmarshal(text, &f) != nil {
				err = &browser.UserError{Status: http.StatusBadGateway,
					Text: "the fleet does not list its tasks; coder fleet ps shows why"}
			}
			return f, err
		},
		Answer: w.answerFleet,
		Cancel: func(ctx context.Context, task string) error {
			_, err := w.runFleet(ctx, "cancel", task)
			return err
		},
	}
}

// answerFleet has the fleet's program sign and send an answer.
func (w *webServer) answerFleet(ctx context.Context, a uip.Response) error {
	args := []string{"answer", a.ID}
	for _, f := range [][2]string{{"--option", a.Option}, {"--input", a.Input}, {"--comment", a.Comment}} {
		if f[1] != "" {
			args = append(args, f[0], f[1])
		}
	}
	for _, part := range a.Parts {
		if part.Input != "" || part.Option == "" {
			return &browser.UserError{Status: http.StatusBadRequest,
				Text: "a fleet accepts one of the options for each part; nothing was changed"}
		}
		args = append(args, "--answer", part.ID+"="+part.Option)
	}
	if a.Dismissed {
		return &browser.UserError{Status: http.StatusBadRequest,
			Text: "a fleet's question waits until it is answered or its task is canceled; nothing was changed"}
	}
	_, err := w.runFleet(ctx, args...)
	return err
}

// runFleet runs the fleet's program; its error message is for the user.
func (w *webServer) runFleet(ctx context.Context, args ...string) ([]byte, error) {
	path, err := w.invocation.findFleet()
	if err != nil {
		return nil, &browser.UserError{Status: http.StatusBadGateway, Text: errorMessage(err).String()}
	}
	ctx, stop := context.WithTimeout(ctx, fleetTimeout)
	defer stop()
	var said bytes.Buffer
	cmd := w.invocation.fleetLauncher().Command(ctx, path, args...)
	cmd.WaitDelay, cmd.Stderr = time.Second, &said
	out, err := cmd.Output()
	if err != nil {
		why := strings.TrimSpace(said.String())
		return nil, &browser.UserError{Status: http.StatusBadGateway,
			Text: cmp.Or(singleLine(why), "the fleet does not list its tasks; coder fleet ps shows why")}
	}
	return out, nil
}
