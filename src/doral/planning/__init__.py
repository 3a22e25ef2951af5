"""What a log says to somebody who has to decide: answers, waiting, costs and budget."""
