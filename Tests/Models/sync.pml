/* The exchange of LarderSync (Docs/Design/0017-sync.md) as a model for spin: two devices, one scope, one record with a counter.
 *
 * Scripts/Torture/model.sh runs it. Every step that a device makes durable in one commit is one atomic step here, so that a crash is one
 * of two things: the step did not happen, or it did and what was on its way to the device is lost. The server's steps are atomic, too.
 * Messages are lost, come twice and come late; between a page's reading and its taking anything may happen. Other records of the scope
 * are there as commits (NOISE) and as deletions that are forgotten (PURGES); a page may end at any commit.
 *
 * Where nothing can happen any more, both devices must have what the server has, with nothing left to say; the counter must be the number
 * of increments unless the record was deleted, and a record that was deleted, and edited by nobody afterwards or meanwhile, must be gone.
 * That no execution goes on for ever is looked for by itself (-DNP and pan -l): with so many losses it ends, or there is a livelock.
 *
 * NO_RECEIPT: the server does not remember the outcome of a push. NO_FENCE: it goes on with a full pass although deletions behind the
 * pass were forgotten. NO_LAST: a page does not tell the outcome of the newest push. Each must give a counterexample.
 * READER: the first device only reads, which leaves few enough states for two purges during a pass.
 */
#ifdef READER
#define EDITS(i) (i == 1)
#else
#define EDITS(i) (1)
#endif
#ifndef INCREMENTS
#define INCREMENTS 1 /* of each device */
#endif
#ifndef DELETIONS
#define DELETIONS 0 /* of both together */
#endif
#ifndef LOSSES
#define LOSSES 1
#endif
#ifndef REPEATS
#define REPEATS 1
#endif
#ifndef NOISE
#define NOISE 0
#endif
#ifndef PURGES
#define PURGES 0
#endif

typedef Receipt { byte seq; bit ok; byte rev; bit is; byte n }

/* rev is the server's revision of the record, 0 where the server has none; base and value are there (bIs, is) or not. */
typedef Device {
  bit is; byte n; bit dirty; bit bIs; byte bN; byte rev;
  byte point; byte seq;
  bit flight; byte fRev; bit fIs; byte fN;
  bit pass; byte pos; byte from; bit seen;
  bit asked; bit stale; bit mustPull; byte increments
}

Device d[2];
Receipt last[2];
byte head, horizon;
bit sIs; byte sN; byte sRev; /* a tombstone has a revision and is not there */
byte losses, repeats, noise, purges, deletions, counted;
bit gone, wasDeleted;

chan push[2] = [2] of { byte, byte, bit, byte };
chan answer[2] = [1] of { byte, bit, byte, bit, byte };
/* since, until, more, record: there is one, rev, is, n; last: seq, ok, rev, is, n */
chan page[2] = [1] of { byte, byte, bit, bit, byte, bit, byte, byte, bit, byte, bit, byte };
chan refusal[2] = [1] of { byte };

#define SAME(i) (d[i].is == d[i].bIs && (!d[i].is || d[i].n == d[i].bN))

inline merge(i, r, e, v) {
  if
  :: e && d[i].is -> /* also where both are equal: two devices that count from 0 to 1 have counted to 2 */
     d[i].n = v + d[i].n - (d[i].bIs -> d[i].bN : 0); d[i].dirty = !(d[i].n == v)
  :: e && !d[i].is ->
     if
     :: d[i].bIs && d[i].bN == v -> skip /* as it was when it was deleted */
     :: else -> d[i].is = 1; d[i].n = v; d[i].dirty = 0
     fi
  :: !e && d[i].is ->
     if
     :: SAME(i) -> d[i].is = 0; d[i].n = 0; d[i].dirty = 0
     :: else -> skip
     fi
  :: !e && !d[i].is -> d[i].dirty = 0
  fi;
  d[i].bIs = (d[i].dirty && e); d[i].bN = (d[i].dirty && e -> v : 0);
  d[i].rev = (e -> r : 0)
}

inline take(i, r, e, v) {
  if
  :: r <= d[i].rev || (!e && d[i].rev == 0) -> skip
  :: else ->
     if
     :: d[i].dirty -> merge(i, r, e, v)
     :: else -> d[i].is = e; d[i].n = (e -> v : 0); d[i].rev = (e -> r : 0)
     fi
  fi
}

inline settle(i, ok, r, e, v) {
  if
  :: ok ->
     d[i].rev = (d[i].fIs -> r : 0);
     if
     :: d[i].is == d[i].fIs && (!d[i].is || d[i].n == d[i].fN) -> d[i].dirty = 0; d[i].bIs = 0; d[i].bN = 0
     :: else -> d[i].bIs = d[i].fIs; d[i].bN = d[i].fN
     fi
  :: else -> take(i, r, e, v); d[i].mustPull = 1 /* a round goes on with pages, before anything is sent again */
  fi;
  d[i].flight = 0; d[i].fRev = 0; d[i].fIs = 0; d[i].fN = 0; d[i].seq++
}

inline endPass(i) {
  d[i].pass = 0; d[i].pos = 0; d[i].from = 0;
  if
  :: !d[i].seen && d[i].rev > 0 ->
     if
     :: d[i].dirty -> merge(i, 0, 0, 0)
     :: else -> d[i].is = 0; d[i].n = 0; d[i].rev = 0
     fi
  :: else -> skip
  fi;
  d[i].seen = 0
}

proctype device(byte i) {
  byte seq, r, v, since, until, lSeq, lR, lV; bit ok, e, more, there, lOk, lE;
end:
  do
  :: atomic { EDITS(i) && d[i].increments < INCREMENTS -> /* the user counts */
       d[i].increments++; counted++; gone = 0;
       if
       :: !d[i].dirty -> d[i].dirty = 1; d[i].bIs = (d[i].rev > 0 && d[i].is); d[i].bN = (d[i].rev > 0 && d[i].is -> d[i].n : 0)
       :: else -> skip
       fi;
       d[i].is = 1; d[i].n++ }
  :: atomic { EDITS(i) && deletions < DELETIONS && d[i].is -> /* the user deletes */
       deletions++; wasDeleted = 1;
       if
       :: !d[i].dirty -> d[i].dirty = 1; d[i].bIs = (d[i].rev > 0); d[i].bN = (d[i].rev > 0 -> d[i].n : 0)
       :: else -> skip
       fi;
       d[i].is = 0; d[i].n = 0 }
  :: atomic { d[i].dirty && !d[i].flight && !d[i].mustPull ->
       if
       :: SAME(i) && !(d[i].is && d[i].rev == 0) -> d[i].dirty = 0; d[i].bIs = 0; d[i].bN = 0
       :: else -> d[i].flight = 1; d[i].fRev = d[i].rev; d[i].fIs = d[i].is; d[i].fN = d[i].n
       fi }
  :: atomic { d[i].flight && empty(answer[i]) && nfull(push[i]) && !(push[i]??[eval(d[i].seq + 1), _, _, _]) ->
       push[i]!d[i].seq + 1, d[i].fRev, d[i].fIs, d[i].fN }
  :: atomic { answer[i]?seq, ok, r, e, v ->
       if
       :: d[i].flight && seq == d[i].seq + 1 -> settle(i, ok, r, e, v); d[i].stale = d[i].asked /* the engine's turn */
       :: else -> skip
       fi; seq = 0; ok = 0; r = 0; e = 0; v = 0 }
  :: atomic { !d[i].asked && (d[i].pass || d[i].point < head || d[i].mustPull) -> /* asks, and the server reads, in one snapshot */
       d[i].asked = 1;
       since = (d[i].pass -> d[i].pos : d[i].point);
       if
#ifdef NO_FENCE
       :: since < horizon && !d[i].pass ->
#else
       :: since < horizon && (!d[i].pass || horizon > d[i].from) ->
#endif
          refusal[i]!horizon
       :: else ->
          until = head;
          do
          :: until > since + 1 -> until--
          :: break
          od;
          there = (sRev > since && sRev <= until);
#ifdef NO_LAST
          page[i]!since, until, (until < head), there, (there -> sRev : 0), (there && sIs), (there -> sN : 0), 0, 0, 0, 0, 0
#else
          page[i]!since, until, (until < head), there, (there -> sRev : 0), (there && sIs), (there -> sN : 0),
            last[i].seq, last[i].ok, last[i].rev, last[i].is, last[i].n
#endif
       fi; since = 0; until = 0; there = 0 }
  :: atomic { refusal[i]?r -> d[i].asked = 0; d[i].stale = 0; d[i].pass = 1; d[i].pos = 0; d[i].from = r; d[i].seen = 0; r = 0 }
  :: atomic { page[i]?since, until, more, there, r, e, v, lSeq, lOk, lR, lE, lV ->
       d[i].asked = 0;
       if
       :: d[i].stale -> goto dropped
       :: else -> skip
       fi;
       if
       :: d[i].flight && lSeq == d[i].seq + 1 -> settle(i, lOk, lR, lE, lV)
       :: else -> skip
       fi;
       if
       :: there -> /* by a page alone: an outcome tells what was there when the push came */
          take(i, r, e, v); d[i].seen = (d[i].pass && e -> 1 : d[i].seen)
       :: else -> skip
       fi;
       if
       :: d[i].pass && more -> d[i].pos = until
       :: d[i].pass && !more -> endPass(i); d[i].point = until
       :: !d[i].pass -> d[i].point = (until > d[i].point -> until : d[i].point)
       fi;
       d[i].mustPull = (more && d[i].mustPull);
dropped:
       d[i].stale = 0; since = 0; until = 0; more = 0; there = 0; r = 0; e = 0; v = 0; lSeq = 0; lOk = 0; lR = 0; lE = 0; lV = 0 }
  od
}

proctype server() {
  byte i, seq, r, v; bit e, again;
end:
  do
  :: atomic {
       if
       :: push[0]?seq, r, e, v -> i = 0
       :: push[1]?seq, r, e, v -> i = 1
       fi;
       if /* it comes once more, behind what is on its way by then */
       :: repeats < REPEATS -> repeats++; push[i]!seq, r, e, v
       :: skip
       fi;
       if
#ifndef NO_RECEIPT
       :: seq < last[i].seq -> goto answered
       :: seq == last[i].seq -> skip
       :: seq > last[i].seq ->
#else
       :: else ->
#endif
          last[i].seq = seq;
          if
          :: r == (sIs -> sRev : 0) ->
             if
             :: !e && sIs -> gone = (!(d[1 - i].dirty && d[1 - i].is) && !(d[i].dirty && d[i].is))
             :: else -> skip
             fi;
             head++; sRev = head; sIs = e; sN = v; last[i].ok = 1; last[i].rev = head; last[i].is = 0; last[i].n = 0
          :: else -> last[i].ok = 0; last[i].rev = sRev; last[i].is = sIs; last[i].n = sN
          fi
       fi;
       if
       :: nfull(answer[i]) -> answer[i]!seq, last[i].ok, last[i].rev, last[i].is, last[i].n
       :: full(answer[i]) -> skip
       fi;
answered:
       i = 0; seq = 0; r = 0; e = 0; v = 0 }
  :: atomic { sRev > 0 && !sIs && purges < PURGES -> purges++; horizon = (sRev > horizon -> sRev : horizon); sRev = 0; sN = 0 }
  :: atomic { noise < NOISE -> noise++; head++ }
  :: atomic { purges < PURGES && head > horizon && !(sRev == head) -> purges++; horizon = head; /* others' tombstones, and its own */
       if
       :: !sIs -> sRev = 0; sN = 0
       :: else -> skip
       fi }
  od
}

/* Loses what is on its way; for the device that is also its death between two commits. */
proctype loss() {
end:
  do
  :: atomic { losses < LOSSES && nempty(push[0]) -> losses++; push[0]?_, _, _, _ }
  :: atomic { losses < LOSSES && nempty(push[1]) -> losses++; push[1]?_, _, _, _ }
  :: atomic { losses < LOSSES && nempty(answer[0]) -> losses++; answer[0]?_, _, _, _, _ }
  :: atomic { losses < LOSSES && nempty(answer[1]) -> losses++; answer[1]?_, _, _, _, _ }
  :: atomic { losses < LOSSES && nempty(page[0]) -> losses++; d[0].asked = 0; d[0].stale = 0; page[0]?_, _, _, _, _, _, _, _, _, _, _, _ }
  :: atomic { losses < LOSSES && nempty(page[1]) -> losses++; d[1].asked = 0; d[1].stale = 0; page[1]?_, _, _, _, _, _, _, _, _, _, _, _ }
  :: atomic { losses < LOSSES && nempty(refusal[0]) -> losses++; d[0].asked = 0; d[0].stale = 0; refusal[0]?_ }
  :: atomic { losses < LOSSES && nempty(refusal[1]) -> losses++; d[1].asked = 0; d[1].stale = 0; refusal[1]?_ }
  od
}

#define SYNCED(i) (!d[i].dirty && !d[i].flight && !d[i].pass && d[i].point == head && d[i].is == sIs && (!sIs || d[i].n == sN))

/* What holds where nothing can happen any more. */
proctype judge() {
end:
  timeout ->
  assert(SYNCED(0) && SYNCED(1));
  assert(wasDeleted || sN == counted);
  assert(!gone || !sIs)
}

init { atomic { run device(0); run device(1); run server(); run loss(); run judge() } }
