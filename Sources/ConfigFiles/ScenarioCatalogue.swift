/// The built-in scenarios, and those in files.
public enum ScenarioCatalogue {
    /// The reason why a scenario is not available.
    public enum LookupError: Error, CustomStringConvertible {
        /// No built-in scenario has that name.
        case unknown(name: String, nearest: [String])
        /// The file could not be read.
        case unreadable(path: String, reason: String)
        /// The file has errors.
        case invalid(FileError)

        public var description: String {
            switch self {
            case .unknown(let name, let nearest):
                let hint = nearest.isEmpty ? "" : "; did you mean \(nearest.joined(separator: ", "))?"
                return
                    "no scenario is called '\(name)'\(hint) (built in: \(ScenarioCatalogue.names.joined(separator: ", ")); "
                    + "name a file by its path, such as ./\(name).yaml)"
            case .unreadable(let path, let reason): return "cannot read \(path): \(reason)"
            case .invalid(let error): return error.description
            }
        }
    }

    /// The built-in files. SwiftPM drops characters that cannot start an identifier from the beginning of their names.
    private static let sources: [(id: String, bytes: [UInt8])] = [
        ("burst-on-edge", PackageResources.burst_on_edge_yaml),
        ("captive-portal-read", PackageResources.captive_portal_read_yaml),
        ("captive-portal-write", PackageResources.captive_portal_write_yaml),
        ("clock-jumps", PackageResources.clock_jumps_yaml),
        ("cold-start-offline", PackageResources.cold_start_offline_yaml),
        ("commuter-30-minutes", PackageResources.commuter_30_minutes_yaml),
        ("conflicts-survive-restart", PackageResources.conflicts_survive_restart_yaml),
        ("create-delete-collapse", PackageResources.create_delete_collapse_yaml),
        ("create-edit-edit-squash", PackageResources.create_edit_edit_squash_yaml),
        ("create-offline-then-heal", PackageResources.create_offline_then_heal_yaml),
        ("create-retried-after-lost-response", PackageResources.create_retried_after_lost_response_yaml),
        ("delete-answer-lost", PackageResources.delete_answer_lost_yaml),
        ("delete-offline", PackageResources.delete_offline_yaml),
        ("delete-vs-remote-edit", PackageResources.delete_vs_remote_edit_yaml),
        ("deleted-stays-deleted", PackageResources.deleted_stays_deleted_yaml),
        ("edit-conflict-after-subway", PackageResources.edit_conflict_after_subway_yaml),
        ("edit-offline-simple", PackageResources.edit_offline_simple_yaml),
        ("edit-vs-edit", PackageResources.edit_vs_edit_yaml),
        ("edit-vs-remote-delete", PackageResources.edit_vs_remote_delete_yaml),
        ("edit-waits-for-create", PackageResources.edit_waits_for_create_yaml),
        ("edit-while-in-flight", PackageResources.edit_while_in_flight_yaml),
        ("failing-delete-keeps-tombstone", PackageResources.failing_delete_keeps_tombstone_yaml),
        ("flapping", PackageResources.flapping_yaml),
        ("half-open", PackageResources.half_open_yaml),
        ("index-diff-on-edge", PackageResources.index_diff_on_edge_yaml),
        ("kill-everywhere", PackageResources.kill_everywhere_yaml),
        ("kill-while-reading", PackageResources.kill_while_reading_yaml),
        ("late-answer", PackageResources.late_answer_yaml),
        ("list-cut-midway", PackageResources.list_cut_midway_yaml),
        ("operation-ids", PackageResources.operation_ids_yaml),
        ("outage-30-min", PackageResources.outage_30_min_yaml),
        ("poison-entry", PackageResources.poison_entry_yaml),
        ("post-answer-lost", PackageResources.post_answer_lost_yaml),
        ("precondition-discipline", PackageResources.precondition_discipline_yaml),
        ("put-answer-lost", PackageResources.put_answer_lost_yaml),
        ("remote-delete-propagates", PackageResources.remote_delete_propagates_yaml),
        ("restart-with-queue", PackageResources.restart_with_queue_yaml),
        ("retry-after", PackageResources.retry_after_yaml),
        ("single-flight", PackageResources.single_flight_yaml),
        ("token-expires-offline", PackageResources.token_expires_offline_yaml),
        ("trickle-at-edge", PackageResources.trickle_at_edge_yaml),
        ("two-device-soak", PackageResources.two_device_soak_yaml),
        ("upgrade-with-queue", PackageResources.upgrade_with_queue_yaml),
        ("upload-cut-halfway", PackageResources.upload_cut_halfway_yaml),
        ("validators", PackageResources.validators_yaml),
        ("warm-read-offline", PackageResources.warm_read_offline_yaml),
    ]

    /// The names of the built-in scenarios.
    public static let names = sources.map(\.id)

    /// Returns whether the file at a path claims to be a scenario: whether a line begins with the key `scenario`.
    public static func isScenario(atPath path: String) -> Bool {
        (try? TextFile.readBytes(path, bytesMax: YAMLReader.bytesMax)).map { ScenarioFile.isScenario($0) } ?? false
    }

    /// Returns the scenario given by a built-in name or the path of a file.
    public static func scenario(_ nameOrPath: String) throws(LookupError) -> ScenarioFile {
        let text: String
        if ProfileCatalogue.isPath(nameOrPath) {
            do {
                text = try TextFile.read(nameOrPath, bytesMax: YAMLReader.bytesMax)
            } catch {
                throw .unreadable(path: nameOrPath, reason: error.reason)
            }
        } else if let source = sources.first(where: { $0.id == nameOrPath }) {
            text = String(decoding: source.bytes, as: UTF8.self)
        } else {
            throw .unknown(name: String(nameOrPath.prefix(60)), nearest: NearestName.of(nameOrPath, in: names))
        }
        do {
            return try ScenarioFile(parsing: text, file: nameOrPath)
        } catch {
            throw .invalid(error)
        }
    }
}
