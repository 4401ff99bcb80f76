package undo

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"iter"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"coder/internal/core/event"
	"coder/internal/host/program"
	"coder/internal/host/repofile"
	"coder/internal/record/undo/gitindex"
)

// gitPatience is how long git may take for one thing.
const gitPatience = 30 * time.Second

// maxIndex is how large an index is read.
const maxIndex = 256 << 20

// repo is the git work tree that holds the workspace. Its files that are as git
// has them need not be kept again. We read the index ourselves and ask git for
// attributes and objects only, so that no filter, hook or monitor of the
// repository is ever run, no lock taken and nothing written. The nil *repo
// knows nothing.
type repo struct {
	root   string // of the workspace whose files these are: "." or a path
	dir    string // the same, for git
	prefix string // of it in the work tree: "" or "a/b/"
	top    string // of the work tree
	git    string // the folder with the index
	door   program.Door

	index     gitindex.Source
	works     bool // git has answered before
	assumed   bool // files were named by git's objects before it answered
	ends      lineEnds
	batch     *catFiles       // running; see release
	committed map[string]bool // objects of the files that HEAD has, while it cannot be another
}

// lineEnds is what is known about git's changing the ends of lines between its
// objects and the work tree.
type lineEnds uint8

const (
	endsUnknown lineEnds = iota
	endsStay             // of all files asked about so far
	endsMayChange
)

// repoOf is the repository that a file may belong to, nil if there is none.
func (k *Keeper) repoOf(name string) (best *repo) {
	for _, r := range k.repos {
		if lies(name, r.root) && (best == nil || len(r.root) > len(best.root)) {
			best = r
		}
	}
	return best
}

// name is what the file is called in the repository's part of the workspace.
func (r *repo) name(rel string) string { return strings.TrimPrefix(rel, r.root+"/") }

// release ends the processes that asking git for contents may have started.
func (k *Keeper) release() {
	for _, r := range k.repos {
		r.release()
	}
}

func findRepo(dir string, door program.Door) *repo {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil || repofile.CheckGit(real) != nil {
		return nil
	}
	top, gitDir := repofile.Repository(real)
	rel, err := filepath.Rel(top, real)
	if top == "" || err != nil {
		return nil
	}
	r := &repo{dir: dir, door: door, top: top, git: gitDir}
	r.index = gitindex.Source{Most: maxIndex, Open: func() (fs.File, error) { return repofile.Below(gitDir).Open("index") }}
	if rel != "." {
		r.prefix = filepath.ToSlash(rel) + "/"
	}
	return r
}

func (r *repo) command(ctx context.Context, args ...string) *program.Cmd {
	cmd := r.door.Query(r.dir).Command(ctx, args...)
	cmd.Env, cmd.WaitDelay = append(cmd.Env, "LC_ALL=C", "GIT_NO_REPLACE_OBJECTS=1"), time.Second
	return cmd
}

// usable reports whether git can be asked about this repository at all.
func (r *repo) usable(ctx context.Context) bool {
	if r == nil {
		return false
	}
	if !r.works {
		ctx, cancel := context.WithTimeout(ctx, gitPatience)
		defer cancel()
		r.works = r.command(ctx, "rev-parse", "--git-dir").Run() == nil
	}
	return r.works
}

// converted are the attributes by which git changes a file between the work
// tree and its objects in ways that cannot be told from the file's size.
var converted = []string{"filter", "working-tree-encoding", "ident"}

// ending are the attributes by which it changes the ends of lines.
var ending = []string{"text", "eol", "crlf"}

// converts reports which of the given files git does not store as they are,
// line ends aside: see restoreEnds.
func (r *repo) converts(ctx context.Context, names iter.Seq[string]) (map[string]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, gitPatience)
	defer cancel()
	ends := endsStay
	if r.convertsAll(ctx) {
		ends = endsMayChange
	}
	not := make(map[string]bool)
	take := func(name, attribute, value string) {
		switch {
		case value == "unspecified" || value == "unset":
		case slices.Contains(converted, attribute):
			not[name] = true
		default:
			ends = endsMayChange
		}
	}
	// What git is told and what it says may be much, so neither is held.
	cmd := r.command(ctx, slices.Concat([]string{"check-attr", "-z", "--stdin"}, converted, ending)...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("ask git for attributes: %w", err)
	}
	if err := piped(cmd, func(out *bufio.Reader) error {
		var told sync.WaitGroup
		defer told.Wait()
		defer in.Close()
		told.Go(func() {
			w := bufio.NewWriter(in)
			for name := range names {
				if _, err := w.WriteString(name + "\x00"); err != nil {
					break
				}
			}
			_ = w.Flush() // if git ended, it says why
			in.Close()
		})
		for {
			var fields [3]string
			for i := range fields {
				text, err := out.ReadString(0)
				if err == io.EOF && i == 0 && text == "" {
					return nil
				}
				if err != nil {
					return err
				}
				fields[i] = text[:len(text)-1]
			}
			take(fields[0], fields[1], fields[2])
		}
	}); err != nil {
		return nil, fmt.Errorf("ask git for attributes: %w", err)
	}
	r.works, r.ends = true, max(r.ends, ends)
	return not, nil
}

// piped runs a command and has what it prints read to the end.
func piped(cmd *program.Cmd, read func(out *bufio.Reader) error) error {
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	err = read(bufio.NewReaderSize(out, 64<<10))
	if err != nil {
		_ = cmd.Process.Kill() // nobody listens any more
	}
	return errors.Join(err, cmd.Wait())
}

// convertsAll reports whether git changes line ends though no attribute says so.
func (r *repo) convertsAll(ctx context.Context) bool {
	out, err := r.command(ctx, "config", "--get", "core.autocrlf").Output()
	var exit *program.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		return false // it is not set
	}
	return err != nil || strings.TrimSpace(string(out)) != "false"
}

func isObject(oid string) bool {
	_, err := hex.DecodeString(oid)
	return err == nil && len(oid) >= 2*sha1.Size
}

// gitHash is the object id that git gives to a content, in the manner of oid.
func gitHash(oid string, content io.ReadSeeker, size int64) (string, error) {
	var sum hash.Hash
	if len(oid) == 2*sha1.Size {
		sum = sha1.New()
	} else {
		sum = sha256.New()
	}
	fmt.Fprintf(sum, "blob %d\x00", size)
	if _, err := content.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	if n, err := io.Copy(sum, content); err != nil || n != size {
		return "", errors.Join(errUnreadable, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// content is what the file described by s held, from git's objects.
func (r *repo) content(ctx context.Context, s event.FileState) ([]byte, error) {
	if r == nil {
		return nil, errNoRepo
	}
	if r.batch == nil {
		b, err := startCatFiles(ctx, r)
		if err != nil {
			return nil, err
		}
		r.batch = b
	}
	data, err := r.batch.read(strings.TrimPrefix(s.Hash, gitPrefix), s.Size)
	if err != nil {
		r.release()
		return nil, fmt.Errorf("read from git: %w", err)
	}
	return restoreEnds(data, s.Size)
}

// release ends the git process that content may have started.
func (r *repo) release() {
	if r == nil {
		return
	}
	r.committed = nil
	if r.batch == nil {
		return
	}
	r.batch.in.Close()
	r.batch.silent.Stop()
	r.batch.cancel() // it has nothing to finish
	_ = r.batch.cmd.Wait()
	r.batch = nil
}

var errOtherForm = errors.New("git stores the file in another form")

// restoreEnds gives data the line ends it had in the work tree, where it took
// size bytes: git may have shortened them, all or none.
func restoreEnds(data []byte, size int64) ([]byte, error) {
	if int64(len(data)) == size {
		return data, nil
	}
	shortened := int64(bytes.Count(data, []byte("\n")) - bytes.Count(data, []byte("\r\n")))
	if int64(len(data))+shortened != size {
		return nil, errOtherForm
	}
	long := make([]byte, 0, size)
	for i, c := range data {
		if c == '\n' && (i == 0 || data[i-1] != '\r') {
			long = append(long, '\r')
		}
		long = append(long, c)
	}
	return long, nil
}

// catFiles is a git process that hands out objects.
type catFiles struct {
	cmd    *program.Cmd
	cancel context.CancelFunc
	silent *time.Timer // runs out when git does not answer
	in     io.WriteCloser
	out    *bufio.Reader
}

func startCatFiles(ctx context.Context, r *repo) (*catFiles, error) {
	ctx, cancel := context.WithCancel(ctx)
	c := &catFiles{cmd: r.command(ctx, "cat-file", "--batch"), cancel: cancel, silent: time.AfterFunc(gitPatience, cancel)}
	in, err := c.cmd.StdinPipe()
	if err == nil {
		var out io.ReadCloser
		if out, err = c.cmd.StdoutPipe(); err == nil {
			c.in, c.out = in, bufio.NewReader(out)
			err = c.cmd.Start()
		}
	}
	if err != nil {
		cancel()
		return nil, fmt.Errorf("start git: %w", err)
	}
	return c, nil
}

// read returns the blob oid of a file that had size bytes.
func (c *catFiles) read(oid string, size int64) ([]byte, error) {
	if !isObject(oid) {
		return nil, fmt.Errorf("%q is not an object id", oid)
	}
	c.silent.Reset(gitPatience) // for each answer, however many are asked for
	if _, err := io.WriteString(c.in, oid+"\n"); err != nil {
		return nil, err
	}
	head, err := c.out.ReadString('\n')
	if err != nil {
		return nil, err
	}
	f := strings.Fields(head) // id, type, size
	if len(f) != 3 || f[1] != "blob" {
		return nil, fmt.Errorf("no object %s", oid)
	}
	n, err := strconv.ParseInt(f[2], 10, 64)
	if err != nil || n > size {
		return nil, errOtherForm
	}
	data := make([]byte, n+1)
	if _, err := io.ReadFull(c.out, data); err != nil {
		return nil, err
	}
	return data[:n], nil
}
