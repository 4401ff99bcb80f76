package cli

import (
	"context"

	"coder/internal/app"
	"coder/internal/ui/term/ink"
)

// runUpdate looks for a newer version. It replaces a program installed from an archive, and shows how to
// update any other installation.
func (inv *invocation) runUpdate(ctx context.Context) error {
	fl, words := inv.flags, inv.printer
	u, unreachable := app.NewUpdater(inv.Env.Env, inv.settings.Config.Provider)
	if fl.rollback {
		version, err := u.RollBack(ctx)
		if err != nil {
			return err
		}
		return inv.printWrapped(words.T("Restored coder %s. A second coder update --rollback brings coder %s back.",
			singleLine(version), app.Version))
	}
	how := singleLine(u.Installation.UpdateCommand())
	if how != "" && !fl.check {
		return inv.printWrapped(words.T("program: %s", singleLine(u.Installation.Path)), "    "+how,
			words.T("Nothing was changed: update coder the way you installed it."))
	}
	if unreachable != nil {
		return unreachable
	}
	newest, newer, err := u.Latest(ctx)
	switch {
	case err != nil:
		return err
	case !newer:
		return inv.printWrapped(words.T("coder %s is the newest version.", newest.Version))
	case fl.check && how == "":
		how = "coder update"
		fallthrough
	case fl.check:
		return inv.printWrapped(words.T("coder %s is available; this is coder %s.", newest.Version, app.Version), "    "+how)
	}
	if err := u.CheckReplaceable(); err != nil {
		return err
	}
	if err := inv.printWrapped(words.T("Downloading coder %s …", newest.Version)); err != nil {
		return err
	}
	if err := u.Install(ctx, newest); err != nil {
		return err
	}
	return inv.printWrapped(words.T("Updated coder %s to %s. Restart running sessions.", app.Version, newest.Version),
		words.T("coder update --rollback restores coder %s.", app.Version))
}

// checkForUpdate looks for a newer version during the first request, if the settings ask for that.
func (t *terminal) checkForUpdate(ctx context.Context) {
	if t.newerVersion != nil || !t.app.Config.Update.Check {
		return
	}
	t.newerVersion = make(chan string, 1)
	ctx = context.WithoutCancel(ctx) // the request may end first
	go func() { t.newerVersion <- t.app.NewerVersion(ctx) }()
}

// showNewerVersion shows the newer version, if found.
func (t *terminal) showNewerVersion() {
	select {
	case version := <-t.newerVersion:
		if version != "" {
			// errors are ignored
			_ = t.printText(ink.Dim, t.invocation.printer.T("coder %s is available; run: coder update", version))
		}
	default:
	}
}
