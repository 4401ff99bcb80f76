package cli

import (
	"context"

	"coder/internal/app"
	"coder/internal/ui/term/ink"
)

// runUpdate looks for a newer version. It replaces a program installed from an archive, and shows how to
// update any other installation.
func (inv *invocation) runUpdate(ctx context.Context) error {
	fl, words := inv.flags, inv.words
	u, unreachable := app.NewUpdater(inv.Env.Env, inv.settings.Config.Provider)
	if fl.rollback {
		version, err := u.Rollback(ctx)
		if err != nil {
			return err
		}
		return inv.tell(words.T("Restored coder %s. A second coder update --rollback brings coder %s back.", oneLine(version), app.Version))
	}
	how := oneLine(u.By.Update())
	if how != "" && !fl.check {
		return inv.tell(words.T("program: %s", oneLine(u.By.Path)), "    "+how, words.T("Nothing was changed: update coder the way you installed it."))
	}
	if unreachable != nil {
		return unreachable
	}
	newest, newer, err := u.Look(ctx)
	switch {
	case err != nil:
		return err
	case !newer:
		return inv.tell(words.T("coder %s is the newest version.", newest.Version))
	case fl.check && how == "":
		how = "coder update"
		fallthrough
	case fl.check:
		return inv.tell(words.T("coder %s is available; this is coder %s.", newest.Version, app.Version), "    "+how)
	}
	if err := u.Replaceable(); err != nil {
		return err
	}
	if err := inv.tell(words.T("Downloading coder %s …", newest.Version)); err != nil {
		return err
	}
	if err := u.Install(ctx, newest); err != nil {
		return err
	}
	return inv.tell(words.T("Updated coder %s to %s. Restart running sessions.", app.Version, newest.Version),
		words.T("coder update --rollback restores coder %s.", app.Version))
}

// lookForUpdate looks for a newer version during the first request, if the settings ask for that.
func (t *terminal) lookForUpdate(ctx context.Context) {
	if t.newer != nil || !t.app.Config.Update.Check {
		return
	}
	t.newer = make(chan string, 1)
	ctx = context.WithoutCancel(ctx) // the request may end first
	go func() { t.newer <- t.app.NewerVersion(ctx) }()
}

// sayNewer shows the newer version, if found.
func (t *terminal) sayNewer() {
	select {
	case version := <-t.newer:
		if version != "" {
			_ = t.say(ink.Dim, t.inv.words.T("coder %s is available; run: coder update", version)) // errors are ignored
		}
	default:
	}
}
