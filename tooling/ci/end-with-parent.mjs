// Preloaded into a process that must not outlive the one that started it, however that one ended.
process.on("disconnect", () => {
  process.kill(process.pid, "SIGTERM");
  setTimeout(() => process.kill(process.pid, "SIGKILL"), 10_000).unref();
});
process.channel?.unref();
