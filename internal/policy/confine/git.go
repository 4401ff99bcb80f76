package confine

import (
	"context"
	"slices"

	"coder/internal/host/program"
	"coder/internal/host/repofile"
	"coder/internal/host/sandbox"
)

// Git has a git of coder's own, which was not started yet, run within bounds. It was
// disarmed by a look at its configuration, and a command may change that between
// the look and the run: what git runs then is confined, too. Git sees the secret
// files of the workspace, or else it would take them for changed. One that writes
// may write its repository, but not what git obeys there. Where nothing confines
// commands, nothing confines git.
func (c *Confiner) Git(ctx context.Context, cmd *program.Cmd, writes bool) error {
	if c.o.Demand == Off {
		return nil
	}
	l, err := c.limits(ctx, nil, false)
	if err != nil {
		return err
	}
	l.Network, l.Hosts, l.Bounds = false, nil, c.bounds()
	records := c.records(ctx, true)
	l.Hide = slices.DeleteFunc(l.Hide, func(path string) bool { return holds(c.o.Root, path) && !slices.Contains(records, path) })
	if !writes {
		reading := c.readingLimits()
		l.Write, l.Protect = reading.Write, reading.Protect
	} else if top, _ := repofile.Repository(cmd.Dir); top != "" {
		write, protect := sandbox.WrittenByGit(top)
		l.Write = append(l.Write, write...)
		l.Protect = slices.DeleteFunc(l.Protect, func(path string) bool {
			return slices.ContainsFunc(write, func(dir string) bool { return path == dir || path == dir+"/" })
		})
		l.Protect = append(l.Protect, protect...)
	}
	report, err := c.report(ctx, l)
	if err != nil || report.Backend == sandbox.None {
		return err
	}
	line, err := c.find(ctx).Wrap(l)
	if err != nil {
		return err
	}
	line.Apply(cmd)
	return nil
}
