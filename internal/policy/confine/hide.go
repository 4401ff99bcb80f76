package confine

import (
	"context"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"coder/internal/core/secret"
	"coder/internal/host/sandbox"
	"coder/internal/policy/risk"
)

// open is what of the program's own folder commands may read: what people
// write for the model to run.
var open = []string{"skills", "commands", "agents", "AGENTS.md"}

// sockets are those on which programs listen outside the workspace, those that
// the environment names, and the folder of the person's own.
func (c *Confiner) sockets() (list []string) {
	if c.o.Sockets != nil {
		list = slices.Clone(c.o.Sockets())
	}
	for _, socket := range sandbox.Listening() {
		if !holds(c.o.Root, socket) && !slices.Contains(list, socket) {
			list = append(list, socket)
		}
	}
	if filepath.IsAbs(c.o.Runtime) {
		list = append(list, filepath.Clean(c.o.Runtime))
	}
	return list
}

// agents are the sockets that programs need for their work.
func (c *Confiner) agents(programs []string) (list []string) {
	for _, a := range []struct{ needs, socket string }{
		{".ssh/", c.o.Agent}, {".gnupg/", filepath.Join(c.o.Runtime, "gnupg")},
	} {
		i := slices.IndexFunc(secret.Places, func(p secret.Place) bool { return p.Path == a.needs })
		if filepath.IsAbs(a.socket) && secret.Places[i].Needs(programs) {
			list = append(list, filepath.Clean(a.socket))
		}
	}
	return list
}

// known are the known places of secrets that are here and that none of the
// programs needs.
func (c *Confiner) known(programs []string) (list []string) {
	for _, p := range secret.Places {
		at := p.Path
		if !filepath.IsAbs(at) {
			if c.o.Home == "" {
				continue
			}
			at = filepath.Join(c.o.Home, at)
		}
		if _, err := os.Lstat(at); err == nil && !p.Needs(programs) {
			list = append(list, filepath.Clean(at))
		}
	}
	return list
}

// programs are what a line runs that was let run on purpose: one that only reads
// was not, and gets nothing for its name.
func programs(r risk.Report) (names []string) {
	if r.ReadOnly {
		return nil
	}
	for _, c := range r.Simple {
		names = append(names, path.Base(c.Name))
	}
	return names
}

// inTree are the secret files of the workspace. Git must see those that it
// tracks as they are, or else it would take them for deleted: a line that only
// runs git, or was let run on purpose, sees them.
func (c *Confiner) inTree(ctx context.Context, r risk.Report) []string {
	if c.o.Secrets == nil {
		return nil
	}
	all, _ := c.o.Secrets(ctx)
	all = slices.DeleteFunc(slices.Clone(all), isPublic)
	if len(all) == 0 || c.o.Tracked == nil || !runsGit(r) || r.ReadOnly && !onlyGit(r) {
		return all
	}
	tracked := c.o.Tracked(all)
	return slices.DeleteFunc(all, func(p string) bool { return slices.Contains(tracked, p) })
}

func onlyGit(r risk.Report) bool {
	return !slices.ContainsFunc(r.Simple, func(s risk.Command) bool { return s.Name != "git" })
}

// headOf is how much of a file tells a certificate from a key.
const headOf = 64 << 10

// isPublic reports whether a file is named like a key and holds none.
func isPublic(file string) bool {
	if ext := strings.ToLower(filepath.Ext(file)); ext != ".pem" && ext != ".key" {
		return false
	}
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > headOf {
		return false
	}
	text, err := io.ReadAll(io.LimitReader(f, headOf))
	return err == nil && secret.IsPublic(file, text)
}

// Hides reports whether secret files that a line does not name are hidden from
// it. Where they are not, what a line reads has to be known before it runs.
func (c *Confiner) Hides(ctx context.Context) bool {
	if c.o.Demand == Off {
		return false
	}
	var files []string
	all := true
	if c.o.Secrets != nil {
		files, all = c.o.Secrets(ctx)
	}
	l := c.readingLimits() // only such a line runs unasked
	l.Hide = files
	return all && c.find(ctx).Hides(l)
}

// Freezes reports whether what is frozen cannot be written by any command.
func (c *Confiner) Freezes(ctx context.Context) bool {
	return c.o.Demand != Off && c.find(ctx).Protects()
}
