package gitstate

import (
	"bytes"
	"compress/zlib"
	"encoding/hex"
	"io"
	"path"
	"path/filepath"
	"strings"

	"coder/internal/host/repofile"
	"coder/internal/record/undo/gitindex"
)

// stagedObjects returns the objects in the index that HEAD does not have. It reads the index and, if something
// is staged, the trees of HEAD above it. If sure is false, git must be asked: HEAD or a tree is in a
// pack, or the index names no trees.
func (r Repository) stagedObjects(index []byte) (ids []string, sure bool) {
	size := gitindex.OIDSize(index)
	trees, err := gitindex.ReadTrees(index, size)
	if err != nil {
		return nil, false
	}
	root, ok := r.headTree(2 * size)
	if !ok {
		return nil, false
	}
	h := headReader{r: r, trees: trees, equalFolders: make(map[string]bool), files: make(map[string]bool)}
	if !h.compare("", root, 0) {
		return nil, false
	}
	err = gitindex.Read(index, size, "", func(e gitindex.Entry) {
		if id := e.OID(); !h.files[id] && !h.isEqualFolder(path.Dir(string(e.Name))) {
			ids = append(ids, id)
		}
	})
	return ids, err == nil
}

// headTree returns the id of HEAD's tree, with the given number of digits.
func (r Repository) headTree(digits int) (id string, ok bool) {
	commit, ok := r.resolve("HEAD", digits)
	if !ok {
		return "", false
	}
	line, _, _ := bytes.Cut(r.readLoose(commit, "commit "), []byte("\n"))
	id, ok = strings.CutPrefix(string(line), "tree ")
	return id, ok && isID(id, digits)
}

// maxRefs limits how many symbolic refs are followed.
const maxRefs = 5

// resolve returns the object that a ref refers to.
func (r Repository) resolve(ref string, digits int) (id string, ok bool) {
	for range maxRefs {
		dir := r.Common
		if ref == "HEAD" {
			dir = r.GitDir
		}
		if ref != "HEAD" && (!strings.HasPrefix(ref, "refs/") || !filepath.IsLocal(ref)) {
			return "", false
		}
		text, err := repofile.NewRoot(dir).Read(ref, 4096)
		if err != nil {
			return r.packedRef(ref, digits)
		}
		name, symbolic := strings.CutPrefix(strings.TrimSpace(string(text)), "ref: ")
		if !symbolic {
			return name, isID(name, digits)
		}
		ref = name
	}
	return "", false
}

func (r Repository) packedRef(ref string, digits int) (id string, ok bool) {
	text, err := repofile.NewRoot(r.Common).Read("packed-refs", maxFile)
	if err != nil {
		return "", false
	}
	for line := range strings.Lines(string(text)) {
		if id, name, _ := strings.Cut(strings.TrimSpace(line), " "); name == ref {
			return id, isID(id, digits)
		}
	}
	return "", false
}

func isID(id string, digits int) bool {
	_, err := hex.DecodeString(id)
	return err == nil && len(id) == digits
}

// readLoose returns the body of a loose object of this type, or nil.
func (r Repository) readLoose(id, kind string) []byte {
	text, err := repofile.NewRoot(r.Common).Read(path.Join("objects", id[:2], id[2:]), maxObject)
	if err != nil {
		return nil
	}
	data, err := inflate(text)
	head, body, ok := bytes.Cut(data, []byte{0})
	if err != nil || !ok || !bytes.HasPrefix(head, []byte(kind)) {
		return nil
	}
	return body
}

func inflate(text []byte) ([]byte, error) {
	z, err := zlib.NewReader(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(z, maxObject))
}

// headReader compares the trees of HEAD with those of the index.
type headReader struct {
	r            Repository
	trees        gitindex.Trees
	equalFolders map[string]bool // folders equal in both, with everything below
	files        map[string]bool // other objects in HEAD
}

const maxDepth = 1000

// compare compares a folder. It returns false if a tree cannot be read.
func (h *headReader) compare(folder, id string, depth int) bool {
	if h.trees[folder] == id {
		h.equalFolders[folder] = true
		return true
	}
	rest := h.r.readLoose(id, "tree ")
	if rest == nil || depth > maxDepth {
		return false
	}
	for len(rest) > 0 {
		entry, after, ok := bytes.Cut(rest, []byte{0})
		n := len(id) / 2
		mode, name, named := strings.Cut(string(entry), " ")
		if !ok || !named || len(after) < n {
			return false
		}
		object := hex.EncodeToString(after[:n])
		if rest = after[n:]; mode != "40000" {
			h.files[object] = true
		} else if !h.compare(path.Join(folder, name), object, depth+1) {
			return false
		}
	}
	return true
}

// isEqualFolder reports whether a folder is the same in HEAD.
func (h *headReader) isEqualFolder(dir string) bool {
	for ; dir != "."; dir = path.Dir(dir) {
		if h.equalFolders[dir] {
			return true
		}
	}
	return h.equalFolders[""]
}
