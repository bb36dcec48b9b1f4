/** A part of what the definition and the workspace of a session would give it. */
export interface SessionRights {
  /** Canonical folders that its agent works in; it starts in the first one. */
  readonly roots: readonly string[]
  /** Names of the MCP servers that its agent may start; absent: all. */
  readonly mcpServers?: readonly string[]
  /**
   * Ids of tools, or prefixes that end with `*`; `svc__read`, `svc__edit`, `svc__execute`, `svc__fetch` and `svc__other` stand
   * for what the agent brings itself. Absent: all, as children had it that an earlier version spawned.
   */
  readonly tools?: readonly string[]
}
