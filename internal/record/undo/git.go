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
	"coder/internal/core/message"
	"coder/internal/host/program"
	"coder/internal/host/repofile"
	"coder/internal/record/undo/gitindex"
)

// gitTimeout is the time limit for one git operation.
const gitTimeout = 30 * time.Second

// maxIndex limits the size of an index.
const maxIndex = 256 << 20

// repo is the git work tree that contains the workspace. Files that git has unchanged need not be saved
// again. coder reads the index itself and asks git only for attributes and objects, so that no filter,
// hook or monitor of the repository runs, no lock is taken and nothing is written. The nil *repo has no
// files.
type repo struct {
	root     string // of the workspace whose files these are: "." or a path
	dir      string // the same, as git's directory
	prefix   string // of it in the work tree: "" or "a/b/"
	top      string // top of the work tree
	git      string // folder of the index
	launcher program.Launcher

	index       gitindex.Source
	hasAnswered bool // git has answered before
	hasAssumed  bool // files were named by git's objects before git answered
	ends        lineEnds
	batch       *catFileProcess // a running process; see release
	committed   map[string]bool // objects of the files in HEAD, while HEAD cannot change
}

// lineEnds is what is known about git changing line ends between its objects and the work tree.
type lineEnds uint8

const (
	endsUnknown   lineEnds = iota
	endsUnchanged          // for all files asked about so far
	endsMayChange
)

// repoFor returns the repository that a file may belong to, or nil.
func (k *Keeper) repoFor(name string) (best *repo) {
	for _, r := range k.repos {
		if isBelow(name, r.root) && (best == nil || len(r.root) > len(best.root)) {
			best = r
		}
	}
	return best
}

// name returns the file's path within the repository's part of the workspace.
func (r *repo) name(rel string) string { return strings.TrimPrefix(rel, r.root+"/") }

// releaseRepos ends processes started to read contents from git.
func (k *Keeper) releaseRepos() {
	for _, r := range k.repos {
		r.release()
	}
}

func findRepo(dir string, door program.Launcher) *repo {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil || repofile.CheckGit(real) != nil {
		return nil
	}
	top, gitDir := repofile.FindRepository(real)
	rel, err := filepath.Rel(top, real)
	if top == "" || err != nil {
		return nil
	}
	r := &repo{dir: dir, launcher: door, top: top, git: gitDir}
	r.index = gitindex.Source{MaxBytes: maxIndex, Open: func() (fs.File,
		error) {
		return repofile.NewRoot(gitDir).Open("index")
	}}
	if rel != "." {
		r.prefix = filepath.ToSlash(rel) + "/"
	}
	return r
}

func (r *repo) command(ctx context.Context, args ...string) *program.Cmd {
	cmd := r.launcher.Query(r.dir).Command(ctx, args...)
	cmd.Env, cmd.WaitDelay = append(cmd.Env, "LC_ALL=C", "GIT_NO_REPLACE_OBJECTS=1"), time.Second
	return cmd
}

// isUsable reports whether git can be used for this repository.
func (r *repo) isUsable(ctx context.Context) bool {
	if r == nil {
		return false
	}
	if !r.hasAnswered {
		ctx, cancel := context.WithTimeout(ctx, gitTimeout)
		defer cancel()
		r.hasAnswered = r.command(ctx, "rev-parse", "--git-dir").Run() == nil
	}
	return r.hasAnswered
}

// convertAttributes are attributes with which git changes a file between work tree and object in ways that the
// file's size does not reveal.
var convertAttributes = []string{"filter", "working-tree-encoding", "ident"}

// lineEndAttributes are the attributes that change line ends.
var lineEndAttributes = []string{"text", "eol", "crlf"}

// convertedFiles reports which of the given files git does not store unchanged, apart from line ends: see
// restoreEnds.
func (r *repo) convertedFiles(ctx context.Context, names iter.Seq[string]) (map[string]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, gitTimeout)
	defer cancel()
	ends := endsUnchanged
	if r.convertsAll(ctx) {
		ends = endsMayChange
	}
	not := make(map[string]bool)
	take := func(name, attribute, value string) {
		switch {
		case value == "unspecified" || value == "unset":
		case slices.Contains(convertAttributes, attribute):
			not[name] = true
		default:
			ends = endsMayChange
		}
	}
	// Git's input and output may be large, so neither is buffered.
	cmd := r.command(ctx, slices.Concat([]string{"check-attr", "-z", "--stdin"}, convertAttributes, lineEndAttributes)...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, message.Errorf("ask git for attributes: %w", err)
	}
	if err := runPiped(cmd, func(out *bufio.Reader) error {
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
			_ = w.Flush() // if git ended, its exit status tells why
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
		return nil, message.Errorf("ask git for attributes: %w", err)
	}
	r.hasAnswered, r.ends = true, max(r.ends, ends)
	return not, nil
}

// runPiped runs a command and reads its output to the end.
func runPiped(cmd *program.Cmd, read func(out *bufio.Reader) error) error {
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	err = read(bufio.NewReaderSize(out, 64<<10))
	if err != nil {
		_ = cmd.Process.Kill() // its output is no longer needed
	}
	return errors.Join(err, cmd.Wait())
}

// convertsAll reports whether git changes line ends without an attribute.
func (r *repo) convertsAll(ctx context.Context) bool {
	out, err := r.command(ctx, "config", "--get", "core.autocrlf").Output()
	var exit *program.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		return false // not set
	}
	return err != nil || strings.TrimSpace(string(out)) != "false"
}

func isObject(oid string) bool {
	_, err := hex.DecodeString(oid)
	return err == nil && len(oid) >= 2*sha1.Size
}

// gitHash returns git's object id of a content, with the hash of oid.
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

// content returns the content of the file described by s from git's objects.
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
		return nil, message.Errorf("read from git: %w", err)
	}
	return restoreEnds(data, s.Size)
}

// release ends the git process started by content.
func (r *repo) release() {
	if r == nil {
		return
	}
	r.committed = nil
	if r.batch == nil {
		return
	}
	r.batch.in.Close()
	r.batch.timeout.Stop()
	r.batch.cancel() // nothing is lost
	_ = r.batch.cmd.Wait()
	r.batch = nil
}

var errConverted = errors.New("git stores the file in another form")

// restoreEnds restores the line ends that data had in the work tree, where its size was size: git may
// have shortened all or none of them.
func restoreEnds(data []byte, size int64) ([]byte, error) {
	if int64(len(data)) == size {
		return data, nil
	}
	shortened := int64(bytes.Count(data, []byte("\n")) - bytes.Count(data, []byte("\r\n")))
	if int64(len(data))+shortened != size {
		return nil, errConverted
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

// catFileProcess is a git process that returns objects.
type catFileProcess struct {
	cmd     *program.Cmd
	cancel  context.CancelFunc
	timeout *time.Timer // fires when git does not answer
	in      io.WriteCloser
	out     *bufio.Reader
}

func startCatFiles(ctx context.Context, r *repo) (*catFileProcess, error) {
	ctx, cancel := context.WithCancel(ctx)
	c := &catFileProcess{cmd: r.command(ctx, "cat-file", "--batch"), cancel: cancel,
		timeout: time.AfterFunc(gitTimeout, cancel)}
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
		return nil, message.Errorf("start git: %w", err)
	}
	return c, nil
}

// read returns the blob oid of a file that had size bytes.
func (c *catFileProcess) read(oid string, size int64) ([]byte, error) {
	if !isObject(oid) {
		return nil, message.Errorf("%q is not an object id", oid)
	}
	c.timeout.Reset(gitTimeout) // a new limit for each answer
	if _, err := io.WriteString(c.in, oid+"\n"); err != nil {
		return nil, err
	}
	head, err := c.out.ReadString('\n')
	if err != nil {
		return nil, err
	}
	f := strings.Fields(head) // id, type, size
	if len(f) != 3 || f[1] != "blob" {
		return nil, message.Errorf("no object %s", oid)
	}
	n, err := strconv.ParseInt(f[2], 10, 64)
	if err != nil || n > size {
		return nil, errConverted
	}
	data := make([]byte, n+1)
	if _, err := io.ReadFull(c.out, data); err != nil {
		return nil, err
	}
	return data[:n], nil
}
