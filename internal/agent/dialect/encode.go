package dialect

import "strings"

// refused is said where a denial has no reason of its own: clients do not take
// one without.
const refused = "refused by reprise"

// Encode says the decision in the client's own dialect. What the event has no
// channel for is not said; [Unsaid] tells what that is. An answer that changes
// nothing is no output at all, in every client. The exit code is always 0, and
// standard error stays empty: in some clients either would be a verdict.
func Encode(e Event, d Decision) Reply {
	d = sayable(e, d)
	if d.empty() {
		return Reply{}
	}
	var w writer
	w.open()
	switch e.Client {
	case "claude", "codex":
		w.claude(e, d)
	case "gemini":
		w.gemini(e, d)
	case "copilot":
		w.copilot(e, d)
	}
	w.end()
	return Reply{Stdout: append(w.b, '\n')}
}

func (d Decision) empty() bool {
	return d.Context == "" && d.Permission == NoOpinion && !d.Block && len(d.UpdatedInput) == 0
}

// sayable is the part of the decision that the client can be told.
func sayable(e Event, d Decision) Decision {
	can := e.Caps()
	out := Decision{Reason: strings.TrimSpace(d.Reason)}
	if can&CapContext != 0 && strings.TrimSpace(d.Context) != "" {
		out.Context = d.Context
	}
	switch {
	case d.Permission == Deny && can&CapDeny != 0:
		// Nothing else counts when the tool does not run.
		if out.Reason == "" {
			out.Reason = refused
		}
		return Decision{Permission: Deny, Reason: out.Reason}
	case d.Permission == Ask && can&CapAsk != 0, d.Permission == Allow && can&CapAllow != 0:
		out.Permission = d.Permission
	}
	if can&CapUpdate != 0 && len(d.UpdatedInput) > 0 {
		if _, err := readPayload(d.UpdatedInput); err == nil && mayUpdate(e, d) {
			out.UpdatedInput = value(d.UpdatedInput).compact()
		}
	}
	if d.Block && can&CapBlock != 0 && out.Reason != "" {
		// A block's reason is the model's next prompt: without one there is
		// nothing to go on with.
		return Decision{Block: true, Reason: out.Reason}
	}
	return out
}

// mayUpdate reports whether the client takes a changed input beside the
// permission. Where it takes one with a permission only, to change an input is
// to vouch for it, and that is the caller's to say.
func mayUpdate(e Event, d Decision) bool {
	if e.Client == "codex" || e.Kind == PermissionAsked {
		return d.Permission == Allow
	}
	return d.Permission != Ask || e.Caps()&CapAsk != 0
}

// Unsaid is what of the decision the client cannot be told in this event:
// context, deny, ask, allow, block or update.
func Unsaid(e Event, d Decision) []string {
	said := sayable(e, d)
	var out []string
	if said.Permission == Deny {
		return nil // the tool does not run, so the rest does not matter
	}
	if d.Permission != NoOpinion && said.Permission != d.Permission && !(e.Client == "codex" && len(said.UpdatedInput) > 0) {
		out = append(out, string(d.Permission))
	}
	if len(d.UpdatedInput) > 0 && len(said.UpdatedInput) == 0 {
		out = append(out, "update")
	}
	if d.Block && !said.Block {
		out = append(out, "block")
	}
	if strings.TrimSpace(d.Context) != "" && said.Context == "" && !said.Block {
		out = append(out, "context")
	}
	return out
}

// claude is the dialect of Claude Code, which Codex shares where it has the
// same event.
func (w *writer) claude(e Event, d Decision) {
	if d.Block {
		w.text("decision", "block")
		w.text("reason", d.Reason)
		return
	}
	permission := d.Permission
	if e.Client == "codex" && e.Kind == ToolBefore && len(d.UpdatedInput) > 0 {
		permission = Allow // the form that its changed input needs
	}
	w.nested("hookSpecificOutput")
	w.text("hookEventName", e.Name)
	switch {
	case permission == NoOpinion:
	case e.Kind == PermissionAsked:
		w.nested("decision")
		w.text("behavior", string(permission))
		if permission == Deny {
			w.text("message", d.Reason)
		}
		if len(d.UpdatedInput) > 0 {
			w.raw("updatedInput", d.UpdatedInput)
		}
		w.end()
	default:
		w.text("permissionDecision", string(permission))
		w.opt("permissionDecisionReason", d.Reason)
	}
	if len(d.UpdatedInput) > 0 && e.Kind == ToolBefore {
		w.raw("updatedInput", d.UpdatedInput)
	}
	w.opt("additionalContext", d.Context)
	w.end()
}

func (w *writer) gemini(e Event, d Decision) {
	if d.Permission == Deny || d.Block {
		w.text("decision", "deny")
		w.text("reason", d.Reason)
		return
	}
	w.nested("hookSpecificOutput")
	w.text("hookEventName", e.Name)
	if len(d.UpdatedInput) > 0 {
		w.raw("tool_input", d.UpdatedInput)
	}
	w.opt("additionalContext", d.Context)
	w.end()
}

func (w *writer) copilot(e Event, d Decision) {
	switch {
	case d.Block:
		w.text("decision", "block")
		w.text("reason", d.Reason)
	case d.Permission == NoOpinion:
	case e.Kind == PermissionAsked:
		w.text("behavior", string(d.Permission))
		if d.Permission == Deny {
			w.text("message", d.Reason)
		}
	default:
		w.text("permissionDecision", string(d.Permission))
		w.opt("permissionDecisionReason", d.Reason)
	}
	if len(d.UpdatedInput) > 0 {
		w.raw("modifiedArgs", d.UpdatedInput)
	}
	w.opt("additionalContext", d.Context)
}
