import type { K } from './needs.js'

/** Progress of counting events from before the first start of the plugin. */
export interface HistoryProgress {
  /** Position of the newest event that is counted. */
  readonly history: number
  /** Position of the last event to count. */
  readonly history_end: number
  /** Whether the days before the oldest event are counted. */
  readonly history_days: number
}

export const historyOf = ({ db }: Pick<K, 'db'>): HistoryProgress | undefined =>
  db.get<HistoryProgress>("SELECT history, history_end, history_days FROM observe_progress WHERE id = 'log'")

/** Whether something is left to count. */
export const isUnfinished = (progress: HistoryProgress | undefined): progress is HistoryProgress =>
  progress !== undefined && (progress.history < progress.history_end || progress.history_days === 0)
