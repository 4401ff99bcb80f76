package risk

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// feed is the content of standard input, as far as it matters to a shell that would run it.
type feed struct {
	kind feedKind
	text string
}

type feedKind uint8

const (
	nothing  feedKind = iota // unspecified, or a file
	given                    // text, from a here-document or a here-string
	computed                 // the same, with parts known only at run time
	piped                    // another command's output
	fetched                  // the same, from the network
)

func (w *walker) redirect(r *syntax.Redirect) {
	target := w.word(r.Word)
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		w.hereDocument(r)
	case syntax.WordHdoc:
		w.feed = feed{kind: given, text: target.text}
		if !target.exact() {
			w.feed.kind = computed
		}
	case syntax.RdrIn:
		w.feed = feed{}
		if target.exact() && (strings.HasPrefix(target.text, "/dev/tcp/") || strings.HasPrefix(target.text, "/dev/udp/")) {
			w.find(Approve, connects, target.text) // some shells connect
		}
		if target.exact() {
			w.report.Reads = append(w.report.Reads, w.places(target)...)
		}
	case syntax.DplIn:
		w.duplicates(r)
		w.feed = feed{}
	case syntax.DplOut:
		w.duplicates(r)
		if !target.exact() {
			w.changes(toFile)
		} else if !isDescriptor(target.text) {
			w.redirected(target, true)
		}
	case syntax.AppOut, syntax.AppAll:
		w.redirected(target, false)
	default: // all that truncate the file, or overwrite its beginning
		w.redirected(target, true)
	}
	if r.N != nil && strings.HasPrefix(r.N.Value, "{") {
		w.changes(otherwiseRead)
	}
}

// duplicates judges the word after >& and <&, which bash expands once more after it removes the quotes.
func (w *walker) duplicates(r *syntax.Redirect) {
	if strings.ContainsAny(w.text(r.Word), "$`") {
		w.unknown("a descriptor that cannot be known in advance", w.text(r.Word))
	}
}

// redirected judges a file that output goes to. A workspace file
// counts like any written file; anything else is riskier.
func (w *walker) redirected(target arg, truncates bool) {
	switch {
	case target.exact() && isSink(target.text):
	case !target.exact() || slices.ContainsFunc(w.places(target), w.leadsOutside):
		w.report.Redirected = true
		w.writes(target, truncates)
	default:
		w.doesMore(toFile)
		places := w.places(target)
		w.report.Redirects = append(w.report.Redirects, places...)
		w.writesAll(places, truncates)
	}
}

// leadsOutside reports whether a path is not in the workspace, or is a link out of it.
func (w *walker) leadsOutside(p string) bool {
	return !path.IsAbs(p) || !w.facts.isInside(p) || !w.facts.isInside(w.facts.real(p))
}

// toFile is the reason why a line that writes is not read-only.
const toFile = "its output goes to a file"

func isDescriptor(s string) bool {
	return s == "-" || s != "" && strings.Trim(s, "0123456789") == "" // 2- is a file in some shells
}

// hereDocument saves the text for a command. With a quoted delimiter, the text is literal.
func (w *walker) hereDocument(r *syntax.Redirect) {
	w.feed = feed{kind: given}
	if w.within > 0 && (r.Hdoc == nil || r.Hdoc.Pos().Offset() >= w.within) {
		w.unknown("a here-document that begins where a substitution ended", w.text(r))
	}
	if r.Hdoc == nil {
		return
	}
	var b builder
	for _, p := range r.Hdoc.Parts {
		if lit, ok := p.(*syntax.Lit); !ok {
			w.part(&b, p)
		} else if quotedDelimiter(r.Word) {
			b.WriteString(lit.Value)
		} else {
			b.WriteString(unquote(lit.Value, "$`\\\n"))
		}
	}
	if w.feed.text = b.String(); b.known != exact {
		w.feed.kind = computed
	}
}

func quotedDelimiter(word *syntax.Word) bool {
	return slices.ContainsFunc(word.Parts, func(p syntax.WordPart) bool {
		lit, ok := p.(*syntax.Lit)
		return !ok || strings.Contains(lit.Value, `\`)
	})
}

// writes judges a file that is opened for writing, and truncated first if truncates.
func (w *walker) writes(a arg, truncates bool) {
	if a.exact() && isSink(a.text) {
		return
	}
	w.changes(toFile)
	if !a.exact() {
		if truncates {
			w.find(Approve, "overwrites a file that cannot be known in advance", a.text)
		}
		return
	}
	w.writesAll(w.places(a), truncates)
}

func (w *walker) writesAll(places []string, truncates bool) {
	w.report.Writes = append(w.report.Writes, places...)
	for _, p := range places {
		switch why := w.facts.protected(p); {
		case strings.HasPrefix(p, "/dev/tcp/"), strings.HasPrefix(p, "/dev/udp/"):
			w.find(Approve, connects, p)
		case isDisk(p):
			w.find(Block, "writes to a disk or to memory", p)
		case p == "/proc/sysrq-trigger":
			w.find(Block, "stops the machine", p)
		case why != "":
			w.find(Approve, "writes to "+why, p)
		case truncates && (!path.IsAbs(p) || w.facts.exists(p)):
			w.find(Approve, "overwrites an existing file", p)
		}
	}
}

// isSink reports whether writing to p loses nothing.
func isSink(p string) bool {
	switch p = path.Clean(p); p {
	case "/dev/null", "/dev/zero", "/dev/full", "/dev/stdout", "/dev/stderr", "/dev/tty":
		return true
	}
	n, ok := strings.CutPrefix(p, "/dev/fd/")
	return ok && isDescriptor(n)
}

// places returns the paths that a word may name: one for every directory
// the shell may be in, or the word itself if those are unknown.
func (w *walker) places(a arg) []string {
	p := a.text
	if a.home && (p == "~" || strings.HasPrefix(p, "~/")) && w.facts.Home != "" {
		p = w.facts.Home + p[1:]
	}
	if path.IsAbs(p) {
		return []string{path.Clean(p)}
	}
	var ps []string
	for _, dir := range w.dirs {
		ps = append(ps, path.Join(dir, p))
	}
	if w.lost || len(ps) == 0 {
		ps = append(ps, path.Clean(p))
	}
	return ps
}

// mayRead records a variable's value: it may be the name of a file that a later command reads.
func (w *walker) mayRead(a arg) {
	if a.exact() && a.text != "" {
		w.report.Reads = append(w.report.Reads, w.places(a)...)
	}
}

// outside is the reason why a change of directory is more than reading.
const outside = "it goes outside the workspace, or to an unknown place"

// cd follows the shell to another directory. If the directory
// does not exist yet, cd may fail and the shell stay.
//
// It reports whether the shell certainly stays in the workspace.
func (w *walker) cd(args []arg) (stays bool) {
	w.arrived = nil
	var operands []arg
	for _, a := range args[1:] {
		if len(operands) > 0 || !a.is("-P", "-L", "--") {
			operands = append(operands, a)
		}
	}
	if len(operands) == 0 {
		operands = []arg{{text: "~", home: true}}
	}
	to := operands[0]
	if len(operands) > 1 || !to.exact() || to.text == "-" || to.text == "" {
		w.lost = true
		w.changes(outside)
		return false
	}
	places := w.places(to)
	stays = true
	for _, p := range places {
		w.lost = w.lost || !path.IsAbs(p)
		if !path.IsAbs(p) || !w.facts.isInside(p) {
			w.changes(outside)
			stays = false
		}
	}
	places = slices.DeleteFunc(slices.Clone(places), func(p string) bool { return !path.IsAbs(p) })
	w.arrived = places
	for _, p := range places {
		if !w.facts.exists(p) {
			places = union(places, w.dirs)
			break
		}
	}
	w.dirs = places
	return stays
}

func endsInCd(s *syntax.Stmt) bool {
	if ampersand(s) {
		return false
	}
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		return len(c.Args) > 0 && c.Args[0].Lit() == "cd" && !s.Background && !s.Negated
	case *syntax.BinaryCmd:
		return c.Op == syntax.AndStmt && endsInCd(c.Y)
	}
	return false
}

var disks = []string{
	"sd", "hd", "vd", "xvd", "nvme", "mmcblk", "disk", "rdisk", "dm-", "md", "loop", "mapper/", "sr", "nbd", "zram", "ram", "pmem",
	"mem", "kmem", "port",
}

// isDisk reports whether a path names a disk, or the machine's memory.
func isDisk(p string) bool {
	name, ok := strings.CutPrefix(p, "/dev/")
	return ok && slices.ContainsFunc(disks, func(d string) bool { return strings.HasPrefix(name, d) })
}

// isRoot reports whether a word may name the root directory, or everything in it.
func (w *walker) isRoot(a arg) bool {
	if a.known == dynamic {
		return false
	}
	for _, p := range w.places(a) {
		for {
			last := path.Base(p)
			if p == "/" || strings.Trim(last, "*.?{},") != "" || !strings.Contains(last, "*") {
				break
			}
			p = path.Dir(p)
		}
		if p == "/" {
			return true
		}
	}
	return false
}

func (w *walker) isDisk(a arg) bool {
	return a.known != dynamic && slices.ContainsFunc(w.places(a), isDisk)
}
