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

// fleet returns what the page about the user's fleet shows and does, through the fleet's own program.
func (w *web) fleet() browser.FleetProgram {
	return browser.FleetProgram{
		Configured: func() bool {
			_, err := os.Stat(filepath.Join(w.own.Home, "fleet", "fleet.json"))
			return err == nil
		},
		Standing: func(ctx context.Context) (f browser.Fleet, err error) {
			text, err := w.askFleet(ctx, "status", "--json")
			if err == nil && json.Unmarshal(text, &f) != nil {
				err = &browser.Problem{Status: http.StatusBadGateway, Text: "the fleet does not list its tasks; coder fleet ps shows why"}
			}
			return f, err
		},
		Answer: w.answerFleet,
		Cancel: func(ctx context.Context, task string) error {
			_, err := w.askFleet(ctx, "cancel", task)
			return err
		},
	}
}

// answerFleet has the fleet's program sign and send an answer.
func (w *web) answerFleet(ctx context.Context, a uip.Response) error {
	args := []string{"answer", a.ID}
	for _, f := range [][2]string{{"--option", a.Option}, {"--input", a.Input}, {"--comment", a.Comment}} {
		if f[1] != "" {
			args = append(args, f[0], f[1])
		}
	}
	for _, part := range a.Parts {
		if part.Input != "" || part.Option == "" {
			return &browser.Problem{Status: http.StatusBadRequest, Text: "a fleet accepts one of the options for each part; nothing was changed"}
		}
		args = append(args, "--answer", part.ID+"="+part.Option)
	}
	if a.Dismissed {
		return &browser.Problem{Status: http.StatusBadRequest, Text: "a fleet's question waits until it is answered or its task is canceled; nothing was changed"}
	}
	_, err := w.askFleet(ctx, args...)
	return err
}

// askFleet runs the fleet's program; its error message is for the user.
func (w *web) askFleet(ctx context.Context, args ...string) ([]byte, error) {
	path, err := w.inv.findFleet()
	if err != nil {
		return nil, &browser.Problem{Status: http.StatusBadGateway, Text: message(err)}
	}
	ctx, stop := context.WithTimeout(ctx, fleetTime)
	defer stop()
	var said bytes.Buffer
	cmd := w.inv.door().Command(ctx, path, args...)
	cmd.WaitDelay, cmd.Stderr = time.Second, &said
	out, err := cmd.Output()
	if err != nil {
		why := strings.TrimSpace(said.String())
		return nil, &browser.Problem{Status: http.StatusBadGateway, Text: cmp.Or(oneLine(why), "the fleet does not list its tasks; coder fleet ps shows why")}
	}
	return out, nil
}
