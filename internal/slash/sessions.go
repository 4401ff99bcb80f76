package slash

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"coder/internal/core/display"
	"coder/internal/core/sanitize"
	"coder/internal/record/session"
)

// Archive is a project's sessions.
type Archive interface {
	// ListHeads lists the sessions, newest first.
	ListHeads(ctx context.Context) ([]session.Head, error)
	// CheckFree returns an error if the session does not exist or a process holds it.
	CheckFree(ctx context.Context, id string) error
	// Export writes a session in a format: json, md or html.
	Export(ctx context.Context, w io.Writer, id, format string) error
	// Rename sets a session's title; an empty one means its first prompt.
	Rename(ctx context.Context, id, title string) error
}

// maxSessions is the most sessions listed.
const maxSessions = 12

// Sessions lists the last sessions and marks the current one.
func Sessions(archive Archive, current string, now func() time.Time) Command {
	return Command{Name: "sessions", ShowsOnly: true, Help: "list the last sessions",
		Run: func(ctx context.Context, _ call) (outcome, error) {
			return listSessions(ctx, archive, current, now())
		}}
}

func listSessions(ctx context.Context, archive Archive, current string, now time.Time) (outcome, error) {
	all, err := archive.ListHeads(ctx)
	if err != nil {
		return outcome{}, err
	}
	if !slices.ContainsFunc(all, func(s session.Head) bool { return s.ID == current }) {
		all = slices.Insert(all, 0, session.Head{ID: current, Updated: now})
	}
	t := display.Table{Header: display.TextCells("", "session", "last used", "turns", "title")}
	for _, s := range all[:min(len(all), maxSessions)] {
		mark := ""
		if s.ID == current {
			mark = "*"
		}
		t.Rows = append(t.Rows, slices.Concat(display.DataCells(mark), display.DataCells(SessionRow(s)...)))
	}
	blocks := []display.Block{t}
	if more := len(all) - maxSessions; more > 0 {
		blocks = append(blocks, display.Text(fmt.Sprintf("and %d older", more)))
	}
	return show(append(blocks, display.Text("/resume ID continues one of them"))...)
}

// SessionRow returns a session's row in a list: id, last use, turns, title.
func SessionRow(s session.Head) []string {
	title := sanitize.Line(s.Meta.Title, 400)
	for _, tag := range s.Tags {
		title += " #" + sanitize.Line(tag, 60)
	}
	return []string{s.ID, s.Updated.Local().Format("2006-01-02 15:04"), strconv.Itoa(s.Meta.Turns),
		strings.TrimSpace(title)}
}
