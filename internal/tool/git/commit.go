package git

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"coder/internal/core/display"
	"coder/internal/core/message"
	"coder/internal/core/sanitize"
	"coder/internal/tool"
)

//go:embed commit.md
var commitDoc string

const maxMessage = 64 << 10

type commitArgs struct {
	Message string `json:"message" also:"msg commit_message" doc:"short subject, empty line, details"`
}

type commitResult struct {
	OK      bool   `json:"ok"`
	Commit  string `json:"commit"`
	Subject string `json:"subject"`
	Files   int    `json:"files"`
}

// Commit returns the tool that commits what is staged, if that is unchanged since the plan.
func Commit(o Options) tool.Tool {
	return tool.Func[commitArgs]{Name: "git_commit", Doc: commitDoc,
		PlanRun: func(ctx context.Context, a commitArgs) (tool.Plan, tool.Run, error) {
			p, err := planCommit(ctx, o, a)
			if err != nil {
				return tool.Plan{}, nil, err
			}
			effects := []tool.Effect{{Kind: tool.Write, Target: "history of " + p.dir}}
			if p.Hooks {
				effects = append(effects, tool.Effect{Kind: tool.Exec, Target: "git commit"})
			}
			return tool.Plan{Title: shortTitle(p.message), Effects: effects, Preview: display.Text(p.preview(len(p.staged)))},
				p.commit, nil
		}}
}

// commitPlan is a planned commit.
type commitPlan struct {
	*repository
	message string
	staged  []string // mode, content and name of every differing file
}

// planCommit records what is staged.
func planCommit(ctx context.Context, o Options, a commitArgs) (*commitPlan, error) {
	switch {
	case strings.TrimSpace(a.Message) == "":
		return nil, errors.New("message is empty")
	case strings.ContainsRune(a.Message, 0):
		return nil, errors.New("message contains a NUL byte")
	case len(a.Message) > maxMessage:
		return nil, message.Errorf("message is too long (%d bytes)", len(a.Message))
	}
	r, err := openRepository(ctx, o)
	if err != nil {
		return nil, err
	}
	p := &commitPlan{repository: r, message: withTrailer(a.Message, o.Trailer)}
	if p.staged, err = r.listStaged(ctx); err != nil {
		return nil, err
	}
	if len(p.staged) > 0 {
		return p, nil
	}
	// Without staged changes, only a merge can be concluded. git
	// itself would enter submodules before it reports that.
	out, err := p.git(ctx, "rev-parse", "--quiet", "--verify", "MERGE_HEAD")
	if err == nil && out.exitCode != 0 {
		err = errors.New("nothing is staged; stage changes with git_add first")
	}
	return p, err
}

// withTrailer is a message with a trailer at its end, below others if there are some.
func withTrailer(message, trailer string) string {
	if trailer = strings.TrimSpace(trailer); trailer == "" || strings.Contains(message, trailer) {
		return message
	}
	message = strings.TrimSpace(message)
	last := message[strings.LastIndexByte(message, '\n')+1:]
	if key, _, found := strings.Cut(last, ": "); found && last != message &&
		strings.HasSuffix(strings.ToLower(key), "-by") {
		return message + "\n" + trailer + "\n"
	}
	return message + "\n\n" + trailer + "\n"
}

// listStaged lists what is staged.
func (r *repository) listStaged(ctx context.Context) ([]string, error) {
	args := []string{"diff", "--cached", "--raw", "-z", "--no-abbrev", "--no-renames", "--no-ext-diff", "--no-textconv",
		"--ignore-submodules=dirty", "--no-relative"}
	out, err := r.run(ctx, r.Git, command{args: args, limit: maxNames})
	switch {
	case err != nil:
		return nil, err
	case out.truncated:
		return nil, errors.New("too many files are staged")
	case out.exitCode != 0:
		return nil, runError("diff", out)
	}
	var list []string
	for pair := range slices.Chunk(splitFields(out.stdout), 2) {
		list = append(list, strings.Join(pair, "\x00"))
	}
	return list, nil
}

func (p *commitPlan) preview(most int) string {
	var b strings.Builder
	b.WriteString(strings.TrimSpace(p.message) + "\n\n")
	for _, f := range p.staged[:min(len(p.staged), most)] {
		what, name, _ := strings.Cut(f, "\x00")
		fmt.Fprintf(&b, "%s  %s\n", what[strings.LastIndexByte(what, ' ')+1:], sanitize.Line(name, 0))
	}
	if more := len(p.staged) - most; more > 0 {
		fmt.Fprintf(&b, "… and %s more\n", tool.FormatCount(more, "file", "files"))
	}
	return b.String()
}

func (p *commitPlan) commit(ctx context.Context, _ io.Writer) (tool.Result, error) {
	r, err := openRepository(ctx, p.Options) // the configuration may have changed
	if err != nil {
		return tool.Result{}, err
	}
	now, err := r.listStaged(ctx)
	if err != nil {
		return tool.Result{}, err
	}
	if !slices.Equal(now, p.staged) {
		return tool.Result{}, errors.New("the staged changes are no longer those of the planned commit; check them again")
	}
	args := []string{"commit", "--quiet", "--cleanup=whitespace", "--no-gpg-sign", "--file=-"}
	with, write := r.Git, r.gitDirs
	if r.Hooks { // hooks may do anything
		with, write = with.WithHooks(), nil
	}
	out, err := r.run(ctx, with, command{args: args, stdin: strings.NewReader(p.message), write: write})
	if err != nil {
		return tool.Result{}, err
	}
	if out.exitCode != 0 {
		return tool.Result{}, runError("commit", out)
	}
	out, err = p.mustGit(ctx, "log", "--max-count=1", "--format=%h %s", "--no-show-signature", "--no-notes", "--no-color",
		"--no-patch")
	if err != nil {
		return tool.Result{}, err
	}
	hash, subject, _ := strings.Cut(strings.TrimSpace(outputText(out)), " ")
	v := commitResult{OK: true, Commit: hash, Subject: subject, Files: len(p.staged)}
	return tool.Result{Value: v, Summary: hash, Show: display.Text(p.preview(maxListed))}, nil
}
