#include "CResources.h"

// An extension before C23.
#pragma clang diagnostic ignored "-Wc23-extensions"

static const struct cresources_file files[] = {
    {"profiles/100-loss.yaml", (const char[]){
#embed "../../../profiles/100-loss.yaml" suffix(, 0)
    }},
    {"profiles/very-bad-network.yaml", (const char[]){
#embed "../../../profiles/very-bad-network.yaml" suffix(, 0)
    }},
    {"profiles/edge.yaml", (const char[]){
#embed "../../../profiles/edge.yaml" suffix(, 0)
    }},
    {"profiles/3g.yaml", (const char[]){
#embed "../../../profiles/3g.yaml" suffix(, 0)
    }},
    {"profiles/dsl.yaml", (const char[]){
#embed "../../../profiles/dsl.yaml" suffix(, 0)
    }},
    {"profiles/lte.yaml", (const char[]){
#embed "../../../profiles/lte.yaml" suffix(, 0)
    }},
    {"profiles/wifi.yaml", (const char[]){
#embed "../../../profiles/wifi.yaml" suffix(, 0)
    }},
    {"profiles/wifi-802.11ac.yaml", (const char[]){
#embed "../../../profiles/wifi-802.11ac.yaml" suffix(, 0)
    }},
    {"profiles/high-latency-dns.yaml", (const char[]){
#embed "../../../profiles/high-latency-dns.yaml" suffix(, 0)
    }},
    {"profiles/offline.yaml", (const char[]){
#embed "../../../profiles/offline.yaml" suffix(, 0)
    }},
    {"profiles/dns.yaml", (const char[]){
#embed "../../../profiles/dns.yaml" suffix(, 0)
    }},
    {"profiles/portal.yaml", (const char[]){
#embed "../../../profiles/portal.yaml" suffix(, 0)
    }},
    {"profiles/uplink-loss.yaml", (const char[]){
#embed "../../../profiles/uplink-loss.yaml" suffix(, 0)
    }},
    {"profiles/downlink-loss.yaml", (const char[]){
#embed "../../../profiles/downlink-loss.yaml" suffix(, 0)
    }},
    {"profiles/3g-good.yaml", (const char[]){
#embed "../../../profiles/3g-good.yaml" suffix(, 0)
    }},
    {"profiles/3g-lossy.yaml", (const char[]){
#embed "../../../profiles/3g-lossy.yaml" suffix(, 0)
    }},
    {"profiles/edge-good.yaml", (const char[]){
#embed "../../../profiles/edge-good.yaml" suffix(, 0)
    }},
    {"profiles/edge-lossy.yaml", (const char[]){
#embed "../../../profiles/edge-lossy.yaml" suffix(, 0)
    }},
    {"profiles/cable.yaml", (const char[]){
#embed "../../../profiles/cable.yaml" suffix(, 0)
    }},
    {"profiles/wifi-good.yaml", (const char[]){
#embed "../../../profiles/wifi-good.yaml" suffix(, 0)
    }},
    {"profiles/2g-rural.yaml", (const char[]){
#embed "../../../profiles/2g-rural.yaml" suffix(, 0)
    }},
    {"profiles/2g-urban.yaml", (const char[]){
#embed "../../../profiles/2g-urban.yaml" suffix(, 0)
    }},
    {"profiles/wpt-cable.yaml", (const char[]){
#embed "../../../profiles/wpt-cable.yaml" suffix(, 0)
    }},
    {"profiles/wpt-dsl.yaml", (const char[]){
#embed "../../../profiles/wpt-dsl.yaml" suffix(, 0)
    }},
    {"profiles/wpt-3g-slow.yaml", (const char[]){
#embed "../../../profiles/wpt-3g-slow.yaml" suffix(, 0)
    }},
    {"profiles/wpt-3g.yaml", (const char[]){
#embed "../../../profiles/wpt-3g.yaml" suffix(, 0)
    }},
    {"profiles/wpt-3g-fast.yaml", (const char[]){
#embed "../../../profiles/wpt-3g-fast.yaml" suffix(, 0)
    }},
    {"profiles/wpt-4g.yaml", (const char[]){
#embed "../../../profiles/wpt-4g.yaml" suffix(, 0)
    }},
    {"profiles/wpt-lte.yaml", (const char[]){
#embed "../../../profiles/wpt-lte.yaml" suffix(, 0)
    }},
    {"profiles/wpt-edge.yaml", (const char[]){
#embed "../../../profiles/wpt-edge.yaml" suffix(, 0)
    }},
    {"profiles/wpt-2g.yaml", (const char[]){
#embed "../../../profiles/wpt-2g.yaml" suffix(, 0)
    }},
    {"profiles/wpt-dial.yaml", (const char[]){
#embed "../../../profiles/wpt-dial.yaml" suffix(, 0)
    }},
    {"profiles/wpt-fios.yaml", (const char[]){
#embed "../../../profiles/wpt-fios.yaml" suffix(, 0)
    }},
    {"profiles/chrome-slow-3g.yaml", (const char[]){
#embed "../../../profiles/chrome-slow-3g.yaml" suffix(, 0)
    }},
    {"profiles/chrome-slow-4g.yaml", (const char[]){
#embed "../../../profiles/chrome-slow-4g.yaml" suffix(, 0)
    }},
    {"profiles/chrome-fast-4g.yaml", (const char[]){
#embed "../../../profiles/chrome-fast-4g.yaml" suffix(, 0)
    }},
    {"profiles/lighthouse-slow-4g.yaml", (const char[]){
#embed "../../../profiles/lighthouse-slow-4g.yaml" suffix(, 0)
    }},
    {"profiles/lighthouse-3g.yaml", (const char[]){
#embed "../../../profiles/lighthouse-3g.yaml" suffix(, 0)
    }},
    {"profiles/firefox-gprs.yaml", (const char[]){
#embed "../../../profiles/firefox-gprs.yaml" suffix(, 0)
    }},
    {"profiles/firefox-2g.yaml", (const char[]){
#embed "../../../profiles/firefox-2g.yaml" suffix(, 0)
    }},
    {"profiles/firefox-2g-good.yaml", (const char[]){
#embed "../../../profiles/firefox-2g-good.yaml" suffix(, 0)
    }},
    {"profiles/firefox-3g.yaml", (const char[]){
#embed "../../../profiles/firefox-3g.yaml" suffix(, 0)
    }},
    {"profiles/firefox-3g-good.yaml", (const char[]){
#embed "../../../profiles/firefox-3g-good.yaml" suffix(, 0)
    }},
    {"profiles/firefox-4g.yaml", (const char[]){
#embed "../../../profiles/firefox-4g.yaml" suffix(, 0)
    }},
    {"profiles/firefox-dsl.yaml", (const char[]){
#embed "../../../profiles/firefox-dsl.yaml" suffix(, 0)
    }},
    {"profiles/firefox-wifi.yaml", (const char[]){
#embed "../../../profiles/firefox-wifi.yaml" suffix(, 0)
    }},
    {"profiles/5g-mid-band.yaml", (const char[]){
#embed "../../../profiles/5g-mid-band.yaml" suffix(, 0)
    }},
    {"profiles/5g-uk.yaml", (const char[]){
#embed "../../../profiles/5g-uk.yaml" suffix(, 0)
    }},
    {"profiles/5g-stadium.yaml", (const char[]){
#embed "../../../profiles/5g-stadium.yaml" suffix(, 0)
    }},
    {"profiles/starlink.yaml", (const char[]){
#embed "../../../profiles/starlink.yaml" suffix(, 0)
    }},
    {"profiles/in-flight.yaml", (const char[]){
#embed "../../../profiles/in-flight.yaml" suffix(, 0)
    }},
    {"profiles/train-wifi.yaml", (const char[]){
#embed "../../../profiles/train-wifi.yaml" suffix(, 0)
    }},
    {"timelines/3g-moving.yaml", (const char[]){
#embed "../../../timelines/3g-moving.yaml" suffix(, 0)
    }},
    {"timelines/subway.yaml", (const char[]){
#embed "../../../timelines/subway.yaml" suffix(, 0)
    }},
    {"timelines/train.yaml", (const char[]){
#embed "../../../timelines/train.yaml" suffix(, 0)
    }},
    {"timelines/elevator.yaml", (const char[]){
#embed "../../../timelines/elevator.yaml" suffix(, 0)
    }},
    {"scenarios/account-switch-with-queue.yaml", (const char[]){
#embed "../../../scenarios/account-switch-with-queue.yaml" suffix(, 0)
    }},
    {"scenarios/another-database.yaml", (const char[]){
#embed "../../../scenarios/another-database.yaml" suffix(, 0)
    }},
    {"scenarios/burst-on-edge.yaml", (const char[]){
#embed "../../../scenarios/burst-on-edge.yaml" suffix(, 0)
    }},
    {"scenarios/captive-portal-read.yaml", (const char[]){
#embed "../../../scenarios/captive-portal-read.yaml" suffix(, 0)
    }},
    {"scenarios/captive-portal-write.yaml", (const char[]){
#embed "../../../scenarios/captive-portal-write.yaml" suffix(, 0)
    }},
    {"scenarios/clock-jumps.yaml", (const char[]){
#embed "../../../scenarios/clock-jumps.yaml" suffix(, 0)
    }},
    {"scenarios/cold-start-offline.yaml", (const char[]){
#embed "../../../scenarios/cold-start-offline.yaml" suffix(, 0)
    }},
    {"scenarios/commuter-30-minutes.yaml", (const char[]){
#embed "../../../scenarios/commuter-30-minutes.yaml" suffix(, 0)
    }},
    {"scenarios/conflict-ends-by-itself.yaml", (const char[]){
#embed "../../../scenarios/conflict-ends-by-itself.yaml" suffix(, 0)
    }},
    {"scenarios/conflicts-survive-restart.yaml", (const char[]){
#embed "../../../scenarios/conflicts-survive-restart.yaml" suffix(, 0)
    }},
    {"scenarios/create-delete-collapse.yaml", (const char[]){
#embed "../../../scenarios/create-delete-collapse.yaml" suffix(, 0)
    }},
    {"scenarios/create-edit-edit-squash.yaml", (const char[]){
#embed "../../../scenarios/create-edit-edit-squash.yaml" suffix(, 0)
    }},
    {"scenarios/create-offline-then-heal.yaml", (const char[]){
#embed "../../../scenarios/create-offline-then-heal.yaml" suffix(, 0)
    }},
    {"scenarios/create-retried-after-lost-response.yaml", (const char[]){
#embed "../../../scenarios/create-retried-after-lost-response.yaml" suffix(, 0)
    }},
    {"scenarios/delay-replaced.yaml", (const char[]){
#embed "../../../scenarios/delay-replaced.yaml" suffix(, 0)
    }},
    {"scenarios/delete-answer-lost.yaml", (const char[]){
#embed "../../../scenarios/delete-answer-lost.yaml" suffix(, 0)
    }},
    {"scenarios/delete-offline.yaml", (const char[]){
#embed "../../../scenarios/delete-offline.yaml" suffix(, 0)
    }},
    {"scenarios/delete-vs-remote-edit.yaml", (const char[]){
#embed "../../../scenarios/delete-vs-remote-edit.yaml" suffix(, 0)
    }},
    {"scenarios/deleted-stays-deleted.yaml", (const char[]){
#embed "../../../scenarios/deleted-stays-deleted.yaml" suffix(, 0)
    }},
    {"scenarios/disk-full-during-answers.yaml", (const char[]){
#embed "../../../scenarios/disk-full-during-answers.yaml" suffix(, 0)
    }},
    {"scenarios/disk-full-during-pull.yaml", (const char[]){
#embed "../../../scenarios/disk-full-during-pull.yaml" suffix(, 0)
    }},
    {"scenarios/disk-full-refuses-changes.yaml", (const char[]){
#embed "../../../scenarios/disk-full-refuses-changes.yaml" suffix(, 0)
    }},
    {"scenarios/disk-full-with-answer.yaml", (const char[]){
#embed "../../../scenarios/disk-full-with-answer.yaml" suffix(, 0)
    }},
    {"scenarios/edit-before-commit.yaml", (const char[]){
#embed "../../../scenarios/edit-before-commit.yaml" suffix(, 0)
    }},
    {"scenarios/edit-conflict-after-subway.yaml", (const char[]){
#embed "../../../scenarios/edit-conflict-after-subway.yaml" suffix(, 0)
    }},
    {"scenarios/edit-offline-simple.yaml", (const char[]){
#embed "../../../scenarios/edit-offline-simple.yaml" suffix(, 0)
    }},
    {"scenarios/edit-vs-edit.yaml", (const char[]){
#embed "../../../scenarios/edit-vs-edit.yaml" suffix(, 0)
    }},
    {"scenarios/edit-vs-remote-delete.yaml", (const char[]){
#embed "../../../scenarios/edit-vs-remote-delete.yaml" suffix(, 0)
    }},
    {"scenarios/edit-waits-for-create.yaml", (const char[]){
#embed "../../../scenarios/edit-waits-for-create.yaml" suffix(, 0)
    }},
    {"scenarios/edit-while-in-flight.yaml", (const char[]){
#embed "../../../scenarios/edit-while-in-flight.yaml" suffix(, 0)
    }},
    {"scenarios/expense-final-statuses.yaml", (const char[]){
#embed "../../../scenarios/expense-final-statuses.yaml" suffix(, 0)
    }},
    {"scenarios/expense-forbidden-write.yaml", (const char[]){
#embed "../../../scenarios/expense-forbidden-write.yaml" suffix(, 0)
    }},
    {"scenarios/expense-forms-wait.yaml", (const char[]){
#embed "../../../scenarios/expense-forms-wait.yaml" suffix(, 0)
    }},
    {"scenarios/expense-kept-errors.yaml", (const char[]){
#embed "../../../scenarios/expense-kept-errors.yaml" suffix(, 0)
    }},
    {"scenarios/expense-many-phones.yaml", (const char[]){
#embed "../../../scenarios/expense-many-phones.yaml" suffix(, 0)
    }},
    {"scenarios/expense-missed-updates.yaml", (const char[]){
#embed "../../../scenarios/expense-missed-updates.yaml" suffix(, 0)
    }},
    {"scenarios/expense-overlapping-changes.yaml", (const char[]){
#embed "../../../scenarios/expense-overlapping-changes.yaml" suffix(, 0)
    }},
    {"scenarios/expense-pages-left.yaml", (const char[]){
#embed "../../../scenarios/expense-pages-left.yaml" suffix(, 0)
    }},
    {"scenarios/expense-queue-delays.yaml", (const char[]){
#embed "../../../scenarios/expense-queue-delays.yaml" suffix(, 0)
    }},
    {"scenarios/expense-queue.yaml", (const char[]){
#embed "../../../scenarios/expense-queue.yaml" suffix(, 0)
    }},
    {"scenarios/expense-reads.yaml", (const char[]){
#embed "../../../scenarios/expense-reads.yaml" suffix(, 0)
    }},
    {"scenarios/expense-restarts.yaml", (const char[]){
#embed "../../../scenarios/expense-restarts.yaml" suffix(, 0)
    }},
    {"scenarios/expense-retry-after.yaml", (const char[]){
#embed "../../../scenarios/expense-retry-after.yaml" suffix(, 0)
    }},
    {"scenarios/expense-sign-in.yaml", (const char[]){
#embed "../../../scenarios/expense-sign-in.yaml" suffix(, 0)
    }},
    {"scenarios/expense-soak.yaml", (const char[]){
#embed "../../../scenarios/expense-soak.yaml" suffix(, 0)
    }},
    {"scenarios/expense-statuses.yaml", (const char[]){
#embed "../../../scenarios/expense-statuses.yaml" suffix(, 0)
    }},
    {"scenarios/expense-transfer-results.yaml", (const char[]){
#embed "../../../scenarios/expense-transfer-results.yaml" suffix(, 0)
    }},
    {"scenarios/expense-transient-statuses.yaml", (const char[]){
#embed "../../../scenarios/expense-transient-statuses.yaml" suffix(, 0)
    }},
    {"scenarios/expense-tried-writes.yaml", (const char[]){
#embed "../../../scenarios/expense-tried-writes.yaml" suffix(, 0)
    }},
    {"scenarios/expense-unreachable.yaml", (const char[]){
#embed "../../../scenarios/expense-unreachable.yaml" suffix(, 0)
    }},
    {"scenarios/expense-unread-results.yaml", (const char[]){
#embed "../../../scenarios/expense-unread-results.yaml" suffix(, 0)
    }},
    {"scenarios/failing-delete-keeps-tombstone.yaml", (const char[]){
#embed "../../../scenarios/failing-delete-keeps-tombstone.yaml" suffix(, 0)
    }},
    {"scenarios/fails-with-the-path.yaml", (const char[]){
#embed "../../../scenarios/fails-with-the-path.yaml" suffix(, 0)
    }},
    {"scenarios/field-bad-payload.yaml", (const char[]){
#embed "../../../scenarios/field-bad-payload.yaml" suffix(, 0)
    }},
    {"scenarios/field-batches-by-period.yaml", (const char[]){
#embed "../../../scenarios/field-batches-by-period.yaml" suffix(, 0)
    }},
    {"scenarios/field-clock-restart.yaml", (const char[]){
#embed "../../../scenarios/field-clock-restart.yaml" suffix(, 0)
    }},
    {"scenarios/field-corrupt-file.yaml", (const char[]){
#embed "../../../scenarios/field-corrupt-file.yaml" suffix(, 0)
    }},
    {"scenarios/field-daily-cache.yaml", (const char[]){
#embed "../../../scenarios/field-daily-cache.yaml" suffix(, 0)
    }},
    {"scenarios/field-delay-ends-early.yaml", (const char[]){
#embed "../../../scenarios/field-delay-ends-early.yaml" suffix(, 0)
    }},
    {"scenarios/field-disk-full-push.yaml", (const char[]){
#embed "../../../scenarios/field-disk-full-push.yaml" suffix(, 0)
    }},
    {"scenarios/field-edits.yaml", (const char[]){
#embed "../../../scenarios/field-edits.yaml" suffix(, 0)
    }},
    {"scenarios/field-events.yaml", (const char[]){
#embed "../../../scenarios/field-events.yaml" suffix(, 0)
    }},
    {"scenarios/field-file-changes.yaml", (const char[]){
#embed "../../../scenarios/field-file-changes.yaml" suffix(, 0)
    }},
    {"scenarios/field-file-loading.yaml", (const char[]){
#embed "../../../scenarios/field-file-loading.yaml" suffix(, 0)
    }},
    {"scenarios/field-file-replaced.yaml", (const char[]){
#embed "../../../scenarios/field-file-replaced.yaml" suffix(, 0)
    }},
    {"scenarios/field-file-statuses.yaml", (const char[]){
#embed "../../../scenarios/field-file-statuses.yaml" suffix(, 0)
    }},
    {"scenarios/field-first-use.yaml", (const char[]){
#embed "../../../scenarios/field-first-use.yaml" suffix(, 0)
    }},
    {"scenarios/field-interface-policy.yaml", (const char[]){
#embed "../../../scenarios/field-interface-policy.yaml" suffix(, 0)
    }},
    {"scenarios/field-intervals.yaml", (const char[]){
#embed "../../../scenarios/field-intervals.yaml" suffix(, 0)
    }},
    {"scenarios/field-killed-anywhere.yaml", (const char[]){
#embed "../../../scenarios/field-killed-anywhere.yaml" suffix(, 0)
    }},
    {"scenarios/field-language.yaml", (const char[]){
#embed "../../../scenarios/field-language.yaml" suffix(, 0)
    }},
    {"scenarios/field-large-file-over-edge.yaml", (const char[]){
#embed "../../../scenarios/field-large-file-over-edge.yaml" suffix(, 0)
    }},
    {"scenarios/field-late-answer.yaml", (const char[]){
#embed "../../../scenarios/field-late-answer.yaml" suffix(, 0)
    }},
    {"scenarios/field-midnight-abroad.yaml", (const char[]){
#embed "../../../scenarios/field-midnight-abroad.yaml" suffix(, 0)
    }},
    {"scenarios/field-nothing-due.yaml", (const char[]){
#embed "../../../scenarios/field-nothing-due.yaml" suffix(, 0)
    }},
    {"scenarios/field-one-file-at-a-time.yaml", (const char[]){
#embed "../../../scenarios/field-one-file-at-a-time.yaml" suffix(, 0)
    }},
    {"scenarios/field-overnight.yaml", (const char[]){
#embed "../../../scenarios/field-overnight.yaml" suffix(, 0)
    }},
    {"scenarios/field-payload-tree.yaml", (const char[]){
#embed "../../../scenarios/field-payload-tree.yaml" suffix(, 0)
    }},
    {"scenarios/field-period-cache.yaml", (const char[]){
#embed "../../../scenarios/field-period-cache.yaml" suffix(, 0)
    }},
    {"scenarios/field-photo-failures.yaml", (const char[]){
#embed "../../../scenarios/field-photo-failures.yaml" suffix(, 0)
    }},
    {"scenarios/field-photo-resumes.yaml", (const char[]){
#embed "../../../scenarios/field-photo-resumes.yaml" suffix(, 0)
    }},
    {"scenarios/field-photo-statuses.yaml", (const char[]){
#embed "../../../scenarios/field-photo-statuses.yaml" suffix(, 0)
    }},
    {"scenarios/field-photos-end-run.yaml", (const char[]){
#embed "../../../scenarios/field-photos-end-run.yaml" suffix(, 0)
    }},
    {"scenarios/field-poison-record.yaml", (const char[]){
#embed "../../../scenarios/field-poison-record.yaml" suffix(, 0)
    }},
    {"scenarios/field-push-again.yaml", (const char[]){
#embed "../../../scenarios/field-push-again.yaml" suffix(, 0)
    }},
    {"scenarios/field-push-rejected.yaml", (const char[]){
#embed "../../../scenarios/field-push-rejected.yaml" suffix(, 0)
    }},
    {"scenarios/field-pushed-but-not-pulled.yaml", (const char[]){
#embed "../../../scenarios/field-pushed-but-not-pulled.yaml" suffix(, 0)
    }},
    {"scenarios/field-quota.yaml", (const char[]){
#embed "../../../scenarios/field-quota.yaml" suffix(, 0)
    }},
    {"scenarios/field-quota-order.yaml", (const char[]){
#embed "../../../scenarios/field-quota-order.yaml" suffix(, 0)
    }},
    {"scenarios/field-refused-acts.yaml", (const char[]){
#embed "../../../scenarios/field-refused-acts.yaml" suffix(, 0)
    }},
    {"scenarios/field-restored-server.yaml", (const char[]){
#embed "../../../scenarios/field-restored-server.yaml" suffix(, 0)
    }},
    {"scenarios/field-retry-after.yaml", (const char[]){
#embed "../../../scenarios/field-retry-after.yaml" suffix(, 0)
    }},
    {"scenarios/field-server-time.yaml", (const char[]){
#embed "../../../scenarios/field-server-time.yaml" suffix(, 0)
    }},
    {"scenarios/field-sign-in.yaml", (const char[]){
#embed "../../../scenarios/field-sign-in.yaml" suffix(, 0)
    }},
    {"scenarios/field-sign-in-again.yaml", (const char[]){
#embed "../../../scenarios/field-sign-in-again.yaml" suffix(, 0)
    }},
    {"scenarios/field-soak.yaml", (const char[]){
#embed "../../../scenarios/field-soak.yaml" suffix(, 0)
    }},
    {"scenarios/field-stitching.yaml", (const char[]){
#embed "../../../scenarios/field-stitching.yaml" suffix(, 0)
    }},
    {"scenarios/field-summer-time.yaml", (const char[]){
#embed "../../../scenarios/field-summer-time.yaml" suffix(, 0)
    }},
    {"scenarios/field-two-of-each.yaml", (const char[]){
#embed "../../../scenarios/field-two-of-each.yaml" suffix(, 0)
    }},
    {"scenarios/field-two-rejections.yaml", (const char[]){
#embed "../../../scenarios/field-two-rejections.yaml" suffix(, 0)
    }},
    {"scenarios/field-wanted-file.yaml", (const char[]){
#embed "../../../scenarios/field-wanted-file.yaml" suffix(, 0)
    }},
    {"scenarios/first-load.yaml", (const char[]){
#embed "../../../scenarios/first-load.yaml" suffix(, 0)
    }},
    {"scenarios/flapping.yaml", (const char[]){
#embed "../../../scenarios/flapping.yaml" suffix(, 0)
    }},
    {"scenarios/forbidden.yaml", (const char[]){
#embed "../../../scenarios/forbidden.yaml" suffix(, 0)
    }},
    {"scenarios/half-open.yaml", (const char[]){
#embed "../../../scenarios/half-open.yaml" suffix(, 0)
    }},
    {"scenarios/index-diff-on-edge.yaml", (const char[]){
#embed "../../../scenarios/index-diff-on-edge.yaml" suffix(, 0)
    }},
    {"scenarios/index-fails.yaml", (const char[]){
#embed "../../../scenarios/index-fails.yaml" suffix(, 0)
    }},
    {"scenarios/kill-everywhere.yaml", (const char[]){
#embed "../../../scenarios/kill-everywhere.yaml" suffix(, 0)
    }},
    {"scenarios/kill-while-reading.yaml", (const char[]){
#embed "../../../scenarios/kill-while-reading.yaml" suffix(, 0)
    }},
    {"scenarios/large-change.yaml", (const char[]){
#embed "../../../scenarios/large-change.yaml" suffix(, 0)
    }},
    {"scenarios/late-answer.yaml", (const char[]){
#embed "../../../scenarios/late-answer.yaml" suffix(, 0)
    }},
    {"scenarios/late-index.yaml", (const char[]){
#embed "../../../scenarios/late-index.yaml" suffix(, 0)
    }},
    {"scenarios/list-cut-midway.yaml", (const char[]){
#embed "../../../scenarios/list-cut-midway.yaml" suffix(, 0)
    }},
    {"scenarios/many-creations.yaml", (const char[]){
#embed "../../../scenarios/many-creations.yaml" suffix(, 0)
    }},
    {"scenarios/many-reads.yaml", (const char[]){
#embed "../../../scenarios/many-reads.yaml" suffix(, 0)
    }},
    {"scenarios/new-token-rejected.yaml", (const char[]){
#embed "../../../scenarios/new-token-rejected.yaml" suffix(, 0)
    }},
    {"scenarios/odd-responses.yaml", (const char[]){
#embed "../../../scenarios/odd-responses.yaml" suffix(, 0)
    }},
    {"scenarios/old-cursor.yaml", (const char[]){
#embed "../../../scenarios/old-cursor.yaml" suffix(, 0)
    }},
    {"scenarios/older-revisions.yaml", (const char[]){
#embed "../../../scenarios/older-revisions.yaml" suffix(, 0)
    }},
    {"scenarios/operation-ids.yaml", (const char[]){
#embed "../../../scenarios/operation-ids.yaml" suffix(, 0)
    }},
    {"scenarios/order-after-a-pause.yaml", (const char[]){
#embed "../../../scenarios/order-after-a-pause.yaml" suffix(, 0)
    }},
    {"scenarios/outage-30-min.yaml", (const char[]){
#embed "../../../scenarios/outage-30-min.yaml" suffix(, 0)
    }},
    {"scenarios/parked-after-lost-response.yaml", (const char[]){
#embed "../../../scenarios/parked-after-lost-response.yaml" suffix(, 0)
    }},
    {"scenarios/pattern-a-pin.yaml", (const char[]){
#embed "../../../scenarios/pattern-a-pin.yaml" suffix(, 0)
    }},
    {"scenarios/pattern-b-add-fails.yaml", (const char[]){
#embed "../../../scenarios/pattern-b-add-fails.yaml" suffix(, 0)
    }},
    {"scenarios/pattern-b-delete-fails.yaml", (const char[]){
#embed "../../../scenarios/pattern-b-delete-fails.yaml" suffix(, 0)
    }},
    {"scenarios/pattern-b-no-flicker.yaml", (const char[]){
#embed "../../../scenarios/pattern-b-no-flicker.yaml" suffix(, 0)
    }},
    {"scenarios/pattern-b-update-fails.yaml", (const char[]){
#embed "../../../scenarios/pattern-b-update-fails.yaml" suffix(, 0)
    }},
    {"scenarios/pattern-c-form.yaml", (const char[]){
#embed "../../../scenarios/pattern-c-form.yaml" suffix(, 0)
    }},
    {"scenarios/pattern-c-form-corrected.yaml", (const char[]){
#embed "../../../scenarios/pattern-c-form-corrected.yaml" suffix(, 0)
    }},
    {"scenarios/pattern-d-page.yaml", (const char[]){
#embed "../../../scenarios/pattern-d-page.yaml" suffix(, 0)
    }},
    {"scenarios/pattern-pages-and-forms.yaml", (const char[]){
#embed "../../../scenarios/pattern-pages-and-forms.yaml" suffix(, 0)
    }},
    {"scenarios/poison-entry.yaml", (const char[]){
#embed "../../../scenarios/poison-entry.yaml" suffix(, 0)
    }},
    {"scenarios/post-answer-lost.yaml", (const char[]){
#embed "../../../scenarios/post-answer-lost.yaml" suffix(, 0)
    }},
    {"scenarios/precondition-discipline.yaml", (const char[]){
#embed "../../../scenarios/precondition-discipline.yaml" suffix(, 0)
    }},
    {"scenarios/put-answer-lost.yaml", (const char[]){
#embed "../../../scenarios/put-answer-lost.yaml" suffix(, 0)
    }},
    {"scenarios/reader-account-statuses.yaml", (const char[]){
#embed "../../../scenarios/reader-account-statuses.yaml" suffix(, 0)
    }},
    {"scenarios/reader-bad-server.yaml", (const char[]){
#embed "../../../scenarios/reader-bad-server.yaml" suffix(, 0)
    }},
    {"scenarios/reader-blocking-form.yaml", (const char[]){
#embed "../../../scenarios/reader-blocking-form.yaml" suffix(, 0)
    }},
    {"scenarios/reader-cache-room.yaml", (const char[]){
#embed "../../../scenarios/reader-cache-room.yaml" suffix(, 0)
    }},
    {"scenarios/reader-clock-back.yaml", (const char[]){
#embed "../../../scenarios/reader-clock-back.yaml" suffix(, 0)
    }},
    {"scenarios/reader-clock-jumps.yaml", (const char[]){
#embed "../../../scenarios/reader-clock-jumps.yaml" suffix(, 0)
    }},
    {"scenarios/reader-cold-start-offline.yaml", (const char[]){
#embed "../../../scenarios/reader-cold-start-offline.yaml" suffix(, 0)
    }},
    {"scenarios/reader-commute.yaml", (const char[]){
#embed "../../../scenarios/reader-commute.yaml" suffix(, 0)
    }},
    {"scenarios/reader-data-saver.yaml", (const char[]){
#embed "../../../scenarios/reader-data-saver.yaml" suffix(, 0)
    }},
    {"scenarios/reader-known-errors.yaml", (const char[]){
#embed "../../../scenarios/reader-known-errors.yaml" suffix(, 0)
    }},
    {"scenarios/reader-late-results.yaml", (const char[]){
#embed "../../../scenarios/reader-late-results.yaml" suffix(, 0)
    }},
    {"scenarios/reader-later-statuses.yaml", (const char[]){
#embed "../../../scenarios/reader-later-statuses.yaml" suffix(, 0)
    }},
    {"scenarios/reader-likes.yaml", (const char[]){
#embed "../../../scenarios/reader-likes.yaml" suffix(, 0)
    }},
    {"scenarios/reader-non-blocking-form.yaml", (const char[]){
#embed "../../../scenarios/reader-non-blocking-form.yaml" suffix(, 0)
    }},
    {"scenarios/reader-odd-bodies.yaml", (const char[]){
#embed "../../../scenarios/reader-odd-bodies.yaml" suffix(, 0)
    }},
    {"scenarios/reader-other-statuses.yaml", (const char[]){
#embed "../../../scenarios/reader-other-statuses.yaml" suffix(, 0)
    }},
    {"scenarios/reader-page-load.yaml", (const char[]){
#embed "../../../scenarios/reader-page-load.yaml" suffix(, 0)
    }},
    {"scenarios/reader-pages-left.yaml", (const char[]){
#embed "../../../scenarios/reader-pages-left.yaml" suffix(, 0)
    }},
    {"scenarios/reader-push-notice.yaml", (const char[]){
#embed "../../../scenarios/reader-push-notice.yaml" suffix(, 0)
    }},
    {"scenarios/reader-received-data.yaml", (const char[]){
#embed "../../../scenarios/reader-received-data.yaml" suffix(, 0)
    }},
    {"scenarios/reader-restarts.yaml", (const char[]){
#embed "../../../scenarios/reader-restarts.yaml" suffix(, 0)
    }},
    {"scenarios/reader-save-state.yaml", (const char[]){
#embed "../../../scenarios/reader-save-state.yaml" suffix(, 0)
    }},
    {"scenarios/reader-short-cache.yaml", (const char[]){
#embed "../../../scenarios/reader-short-cache.yaml" suffix(, 0)
    }},
    {"scenarios/reader-soak.yaml", (const char[]){
#embed "../../../scenarios/reader-soak.yaml" suffix(, 0)
    }},
    {"scenarios/reader-stale-read.yaml", (const char[]){
#embed "../../../scenarios/reader-stale-read.yaml" suffix(, 0)
    }},
    {"scenarios/reader-ttl-cache.yaml", (const char[]){
#embed "../../../scenarios/reader-ttl-cache.yaml" suffix(, 0)
    }},
    {"scenarios/reader-two-devices.yaml", (const char[]){
#embed "../../../scenarios/reader-two-devices.yaml" suffix(, 0)
    }},
    {"scenarios/reader-user-started-get.yaml", (const char[]){
#embed "../../../scenarios/reader-user-started-get.yaml" suffix(, 0)
    }},
    {"scenarios/reads-fail.yaml", (const char[]){
#embed "../../../scenarios/reads-fail.yaml" suffix(, 0)
    }},
    {"scenarios/refresh-fails.yaml", (const char[]){
#embed "../../../scenarios/refresh-fails.yaml" suffix(, 0)
    }},
    {"scenarios/refresh-refused.yaml", (const char[]){
#embed "../../../scenarios/refresh-refused.yaml" suffix(, 0)
    }},
    {"scenarios/rejected-writes.yaml", (const char[]){
#embed "../../../scenarios/rejected-writes.yaml" suffix(, 0)
    }},
    {"scenarios/remote-delete-propagates.yaml", (const char[]){
#embed "../../../scenarios/remote-delete-propagates.yaml" suffix(, 0)
    }},
    {"scenarios/resolved-then-rejected.yaml", (const char[]){
#embed "../../../scenarios/resolved-then-rejected.yaml" suffix(, 0)
    }},
    {"scenarios/restart-with-queue.yaml", (const char[]){
#embed "../../../scenarios/restart-with-queue.yaml" suffix(, 0)
    }},
    {"scenarios/restored-between-changes.yaml", (const char[]){
#embed "../../../scenarios/restored-between-changes.yaml" suffix(, 0)
    }},
    {"scenarios/retry-after.yaml", (const char[]){
#embed "../../../scenarios/retry-after.yaml" suffix(, 0)
    }},
    {"scenarios/server-restored.yaml", (const char[]){
#embed "../../../scenarios/server-restored.yaml" suffix(, 0)
    }},
    {"scenarios/single-flight.yaml", (const char[]){
#embed "../../../scenarios/single-flight.yaml" suffix(, 0)
    }},
    {"scenarios/token-expires-offline.yaml", (const char[]){
#embed "../../../scenarios/token-expires-offline.yaml" suffix(, 0)
    }},
    {"scenarios/trickle-at-edge.yaml", (const char[]){
#embed "../../../scenarios/trickle-at-edge.yaml" suffix(, 0)
    }},
    {"scenarios/two-device-soak.yaml", (const char[]){
#embed "../../../scenarios/two-device-soak.yaml" suffix(, 0)
    }},
    {"scenarios/upgrade-with-queue.yaml", (const char[]){
#embed "../../../scenarios/upgrade-with-queue.yaml" suffix(, 0)
    }},
    {"scenarios/upload-cut-halfway.yaml", (const char[]){
#embed "../../../scenarios/upload-cut-halfway.yaml" suffix(, 0)
    }},
    {"scenarios/validators.yaml", (const char[]){
#embed "../../../scenarios/validators.yaml" suffix(, 0)
    }},
    {"scenarios/warm-read-offline.yaml", (const char[]){
#embed "../../../scenarios/warm-read-offline.yaml" suffix(, 0)
    }},
    {"scenarios/write-statuses.yaml", (const char[]){
#embed "../../../scenarios/write-statuses.yaml" suffix(, 0)
    }},
    {"Sources/C/CResources/dashboard/app.js", (const char[]){
#embed "dashboard/app.js" suffix(, 0)
    }},
    {"Sources/C/CResources/dashboard/chart.js", (const char[]){
#embed "dashboard/chart.js" suffix(, 0)
    }},
    {"Sources/C/CResources/dashboard/details.js", (const char[]){
#embed "dashboard/details.js" suffix(, 0)
    }},
    {"Sources/C/CResources/dashboard/filter.js", (const char[]){
#embed "dashboard/filter.js" suffix(, 0)
    }},
    {"Sources/C/CResources/dashboard/format.js", (const char[]){
#embed "dashboard/format.js" suffix(, 0)
    }},
    {"Sources/C/CResources/dashboard/help.js", (const char[]){
#embed "dashboard/help.js" suffix(, 0)
    }},
    {"Sources/C/CResources/dashboard/icon-lost.svg", (const char[]){
#embed "dashboard/icon-lost.svg" suffix(, 0)
    }},
    {"Sources/C/CResources/dashboard/icon-on.svg", (const char[]){
#embed "dashboard/icon-on.svg" suffix(, 0)
    }},
    {"Sources/C/CResources/dashboard/icon.svg", (const char[]){
#embed "dashboard/icon.svg" suffix(, 0)
    }},
    {"Sources/C/CResources/dashboard/index.html", (const char[]){
#embed "dashboard/index.html" suffix(, 0)
    }},
    {"Sources/C/CResources/dashboard/model.js", (const char[]){
#embed "dashboard/model.js" suffix(, 0)
    }},
    {"Sources/C/CResources/dashboard/proxies.js", (const char[]){
#embed "dashboard/proxies.js" suffix(, 0)
    }},
    {"Sources/C/CResources/dashboard/snippets.js", (const char[]){
#embed "dashboard/snippets.js" suffix(, 0)
    }},
    {"Sources/C/CResources/dashboard/stream.js", (const char[]){
#embed "dashboard/stream.js" suffix(, 0)
    }},
    {"Sources/C/CResources/dashboard/style.css", (const char[]){
#embed "dashboard/style.css" suffix(, 0)
    }},
    {"Sources/C/CResources/dashboard/table.js", (const char[]){
#embed "dashboard/table.js" suffix(, 0)
    }},
    {"Sources/C/CResources/report/history.js", (const char[]){
#embed "report/history.js" suffix(, 0)
    }},
    {"Sources/C/CResources/report/report.css", (const char[]){
#embed "report/report.css" suffix(, 0)
    }},
    {"Sources/C/CResources/report/report.js", (const char[]){
#embed "report/report.js" suffix(, 0)
    }},
    {"Sources/C/CResources/demo/demo.css", (const char[]){
#embed "demo/demo.css" suffix(, 0)
    }},
    {"Sources/C/CResources/demo/demo.html", (const char[]){
#embed "demo/demo.html" suffix(, 0)
    }},
    {"Sources/C/CResources/demo/demo.js", (const char[]){
#embed "demo/demo.js" suffix(, 0)
    }},
    {"Sources/C/CResources/demo/patterns.yaml", (const char[]){
#embed "demo/patterns.yaml" suffix(, 0)
    }},
    {"Sources/C/CResources/demo/subway.yaml", (const char[]){
#embed "demo/subway.yaml" suffix(, 0)
    }},
    {0, 0},
};

const struct cresources_file *cresources_file_at(long index) { return &files[index]; }
