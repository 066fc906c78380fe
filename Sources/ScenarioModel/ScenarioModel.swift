//  ScenarioModel: what a scenario says, what happened, and whether the one agrees with the other.
//
//  Owns: the plan, the history of a run, expectations, the verdict.
//
//  Does not own: files (Files), running anything (ScenarioRunner).
