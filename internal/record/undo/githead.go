package undo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"coder/internal/core/event"
	"coder/internal/core/message"
)

// Most files of a work tree equal the last commit. A tree with only such files needs no blob: its name
// consists of the commit's own tree and the modes that git does not record,
//
//	head:<object id>,<mode of files>,<of programs>,<of directories>,<root>
//
// repeated with spaces between them if there are several roots. Any other tree in a repository is saved
// as its difference from that.
const headPrefix = "head:"

func isHead(name string) bool { return strings.HasPrefix(name, headPrefix) }

// headRoot describes one root in a head name.
type headRoot struct {
	oid                    string
	file, executable, dirs fs.FileMode
	root                   string
}

func (h headRoot) String() string {
	return fmt.Sprintf("%s,%o,%o,%o,%s", h.oid, h.file, h.executable, h.dirs, url.PathEscape(h.root))
}

func parseHeadRoot(s string) (h headRoot, err error) {
	f := strings.Split(s, ",")
	if len(f) != 5 || !isObject(f[0]) {
		return h, errTree
	}
	h.oid = f[0]
	if err := h.parseModes(f[1:]); err != nil {
		return h, err
	}
	if h.root, err = url.PathUnescape(f[4]); err != nil {
		return h, errTree
	}
	return h, nil
}

func (h *headRoot) parseModes(f []string) error {
	for i, m := range []*fs.FileMode{&h.file, &h.executable, &h.dirs} {
		n, err := strconv.ParseUint(f[i], 8, 9)
		if err != nil {
			return errTree
		}
		*m = fs.FileMode(n)
	}
	return nil
}

// headFile is a file of a commit.
type headFile struct {
	path string
	kind string // git's mode for it
	oid  string
	size int64 // negative if unknown
}

// Git's modes of files.
const (
	gitFile    = "100644"
	gitProgram = "100755"
	gitLink    = "120000"
)

// headTree returns the tree object of the commit with the root's files.
func (r *repo) headTree(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, gitTimeout)
	defer cancel()
	name := "HEAD^{tree}"
	if r.prefix != "" {
		name = "HEAD:" + strings.TrimSuffix(r.prefix, "/")
	}
	out, err := r.command(ctx, "rev-parse", "--verify", "--quiet", name).Output()
	oid := strings.TrimSpace(string(out))
	if err == nil && !isObject(oid) {
		err = errConverted
	}
	return oid, err
}

// eachFile calls visit for the files of such an object, with their sizes on request, until visit returns
// false. It omits everything except files and links.
func (r *repo) eachFile(ctx context.Context, oid string, sizes bool, visit func(headFile) bool) error {
	ctx, cancel := context.WithTimeout(ctx, gitTimeout)
	defer cancel()
	args := []string{"ls-tree", "-r", "-z", "--full-tree"}
	if sizes {
		args = append(args, "-l")
	}
	err := runPiped(r.command(ctx, append(args, oid)...), func(out *bufio.Reader) error {
		for {
			line, err := out.ReadString(0)
			if err == io.EOF && line == "" {
				return nil
			}
			if err != nil {
				return err
			}
			f, ok := parseHeadFile(line[:len(line)-1])
			f.path = path.Join(r.root, f.path)
			if ok && isValidName(f.path) && !visit(f) {
				return context.Canceled // stop: no more is wanted
			}
		}
	})
	if err != nil {
		return message.Errorf("list git files: %w", err)
	}
	return nil
}

// parseHeadFile parses git's description of a file: mode, type, object, perhaps the size, and the name
// after a tab.
func parseHeadFile(line string) (f headFile, ok bool) {
	about, name, _ := strings.Cut(line, "\t")
	words := strings.Fields(about)
	if len(words) < 3 || name == "" {
		return f, false
	}
	f = headFile{path: name, kind: words[0], oid: words[2], size: -1}
	if len(words) > 3 {
		n, err := strconv.ParseInt(words[3], 10, 64)
		if err != nil {
			return f, false
		}
		f.size = n
	}
	return f, f.kind == gitFile || f.kind == gitProgram || f.kind == gitLink
}

// node returns the file as described by the tree's name. A link's target is not included.
func (f headFile) node(h headRoot) *node {
	n := &node{name: path.Base(f.path), hash: gitPrefix + f.oid, stamp: stamp{mode: h.file, size: f.size}}
	switch f.kind {
	case gitProgram:
		n.stamp.mode = h.executable
	case gitLink:
		n.hash = linkHashOf("")
	}
	return n
}

// matches reports whether restoring the file would yield n.
func (f headFile) matches(n *node, h headRoot) bool {
	if n == nil || n.isLost {
		return false
	}
	if f.kind == gitLink {
		to, isLink := n.linkTarget()
		oid, err := gitHash(f.oid, strings.NewReader(to), int64(len(to)))
		return err == nil && isLink && oid == f.oid
	}
	return n.hash == gitPrefix+f.oid && n.stamp.mode == f.node(h).stamp.mode && (f.size < 0 || f.size == n.stamp.size)
}

// headBasedTree returns the tree of git's HEAD, with the stamps of t where they match; nil if there is none.
func (k *Keeper) headBasedTree(ctx context.Context, t *tree) *tree {
	base := &tree{folders: make(map[string]*folder)}
	var names []string
	for _, r := range k.repos {
		if t.folders[r.root] == nil {
			continue
		}
		h, err := headRoot{root: r.root}, error(nil)
		if h.oid, err = r.headTree(ctx); err == nil {
			err = h.setModes(ctx, r, t)
		}
		if err != nil {
			continue // then coder saves it itself
		}
		next := base.withRoot(h, func(yield func(edit) bool) {
			err = r.eachFile(ctx, h.oid, r.ends != endsUnchanged, func(f headFile) bool {
				if k.repoFor(f.path) != r {
					return true
				}
				n := t.find(f.path)
				if !f.matches(n, h) {
					n = f.node(h)
				}
				return yield(edit{f.path, n})
			})
		}, t)
		if err != nil {
			continue
		}
		names = append(names, h.String())
		base = next
	}
	if len(names) == 0 {
		return nil
	}
	base.chain = []string{headPrefix + strings.Join(names, " ")}
	return base
}

// withRoot returns the tree with one more root, including the directories above its files. It shares
// whatever equals another tree.
func (t *tree) withRoot(h headRoot, files iter.Seq[edit], like *tree) *tree {
	count := 0
	next := t.withEdits(func(yield func(edit) bool) {
		seen := map[string]bool{".": true, "/": true, h.root: true}
		var up []edit
		for f := range files {
			up = append(up[:0], f)
			for dir := path.Dir(f.path); !seen[dir]; dir = path.Dir(dir) {
				seen[dir] = true
				up = append(up, edit{dir, &node{name: path.Base(dir), hash: dirHash, stamp: stamp{mode: fs.ModeDir | h.dirs}}})
			}
			for _, e := range slices.Backward(up) { // parents before their content
				if count++; !yield(e) {
					return
				}
			}
		}
	}, like)
	next.baseSize = t.baseSize + count*headFileSize
	next.addRoots(append(slices.Clone(t.roots), h.root))
	return next
}

// headFileSize is a file's approximate size in the blob of a tree.
const headFileSize = 64

// setModes sets the most frequent modes in h.
func (h *headRoot) setModes(ctx context.Context, r *repo, t *tree) error {
	counts := make(map[string]map[fs.FileMode]int)
	count := func(kind, rel string) {
		f := t.folders[path.Dir(rel)]
		if i, ok := f.index(path.Base(rel)); ok && (f.hashes[i] == packedDir) == (kind == dirHash) {
			if counts[kind] == nil {
				counts[kind] = make(map[fs.FileMode]int)
			}
			counts[kind][f.stamp(i).mode.Perm()]++
		}
	}
	r.committed = make(map[string]bool)
	err := r.eachFile(ctx, h.oid, false, func(f headFile) bool {
		r.committed[f.oid] = true
		count(f.kind, f.path)
		count(dirHash, path.Dir(f.path))
		return true
	})
	h.file, h.executable, h.dirs = mostFrequent(counts[gitFile]), mostFrequent(counts[gitProgram]),
		mostFrequent(counts[dirHash])
	return err
}

// committedObjects returns the objects of HEAD's files below the root.
func (k *Keeper) committedObjects(ctx context.Context) map[string]bool {
	for _, r := range k.repos {
		if r.root != "." {
			continue
		}
		if r.committed == nil {
			r.committed = make(map[string]bool)
			if oid, err := r.headTree(ctx); err == nil {
				_ = r.eachFile(ctx, oid, false, func(f headFile) bool { // objects not listed are saved
					r.committed[f.oid] = true
					return true
				})
			}
		}
		return r.committed
	}
	return nil
}

func mostFrequent(counts map[fs.FileMode]int) (best fs.FileMode) {
	for m, n := range counts {
		if n > counts[best] || n == counts[best] && m > best {
			best = m
		}
	}
	return best
}

// HeadObject returns the git object that a saved tree is based on, the commit's own tree of the workspace's
// files, or "".
func (k *Keeper) HeadObject(name string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	c, err := k.readChain(name)
	if err != nil || !isHead(c.head) {
		return ""
	}
	for part := range strings.SplitSeq(strings.TrimPrefix(c.head, headPrefix), " ") {
		if h, err := parseHeadRoot(part); err == nil && h.root == "." {
			return h.oid
		}
	}
	return ""
}

func (k *Keeper) headTree(ctx context.Context, name string) (*tree, error) {
	t := &tree{folders: make(map[string]*folder)}
	for part := range strings.SplitSeq(strings.TrimPrefix(name, headPrefix), " ") {
		h, err := parseHeadRoot(part)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(k.repos, func(r *repo) bool { return r.root == h.root })
		if i < 0 {
			return nil, errNoRepo
		}
		r := k.repos[i]
		t = t.withRoot(h, func(yield func(edit) bool) {
			var unread error
			err = r.eachFile(ctx, h.oid, true, func(f headFile) bool {
				n := f.node(h)
				if f.kind == gitLink && unread == nil {
					var to []byte
					to, unread = r.content(ctx, event.FileState{Hash: gitPrefix + f.oid, Size: f.size})
					n.hash = linkHashOf(string(to))
				}
				return k.repoFor(f.path) != r || yield(edit{f.path, n})
			})
			err = errors.Join(err, unread)
		}, nil)
		if err != nil {
			return nil, err
		}
	}
	t.chain = []string{name}
	return t, nil
}

var errNoRepo = errors.New("the git repository no longer exists")
