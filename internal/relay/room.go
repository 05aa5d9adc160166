package relay

import (
	"context"
	"fmt"

	"reprise/internal/fleet"
)

// shares are what the two streams of a project that is new on the servers may grow to, what runs
// say and files that come of them. The servers set aside what a stream may grow to: of an account
// with a limit a project takes half of what is free at most, so that the next one finds room, too.
func (r *Relay) shares(ctx context.Context) (output, files int64) {
	output, files = maxAllBytes, maxFiles
	info, err := r.conn.JS.AccountInfo(ctx)
	if err != nil {
		return output, files // who makes it hears what is wrong
	}
	replicas := int64(max(r.conn.Replicas(), 1))
	limit, taken := info.Limits.MaxStore, int64(max(info.ReservedStore, info.Store))
	if tier, ok := info.Tiers[fmt.Sprintf("R%d", replicas)]; ok {
		limit, taken = tier.Limits.MaxStore, int64(max(tier.ReservedStore, tier.Store))
	}
	if limit <= 0 { // none of its own
		return output, files
	}
	half := (limit - taken) / 2 / replicas
	return min(output, max(half/5, minAllBytes)), min(files, max(half*4/5, minFiles))
}

// asLarge makes something that may grow to most bytes, or to half of that, and so on down to
// least, where the servers have no room for more: a bound that is larger than what is free is
// refused.
func asLarge[T any](most, least int64, make func(most int64) (T, error)) (T, error) {
	for {
		t, err := make(most)
		if !fleet.Full(err) || most <= least {
			return t, err
		}
		most = max(most/2, least)
	}
}

// makeRoom halves what runs may say, where that is not needed: an earlier version gave it all that
// there was, and on a small disk it may be so still. false where nothing can be got so.
func (r *Relay) makeRoom(ctx context.Context) bool {
	s, err := r.conn.JS.Stream(ctx, r.names.Output)
	if err != nil {
		return false
	}
	info := s.CachedInfo()
	cfg := info.Config
	next := max(cfg.MaxBytes/2, minAllBytes)
	if cfg.MaxBytes <= minAllBytes || info.State.Bytes > uint64(next) {
		return false
	}
	cfg.MaxBytes = next
	_, err = r.conn.JS.UpdateStream(ctx, cfg)
	return err == nil
}
